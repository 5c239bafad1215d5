/**
 * Compiles ggml's CUDA backend and puts it beside the addon, which loads it at run time where there is a GPU.
 *
 *   node scripts/build-cuda.mjs [--architectures=86;90] [--whisper-source=FOLDER] [--jobs=N]
 *
 * --architectures takes compute capabilities without the point. When it is absent, this machine's GPU is built for,
 * or without one every capability that ggml names, which takes hours; a single one takes about half an hour on one
 * core. nvcc comes from the CUDA toolkit (PATH, CUDA_HOME or /usr/local/cuda). cuBLAS comes from the toolkit, or from
 * the Python package index where the toolkit has none.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildGpuLibrary, gpuBuildFolder } from './gpu-library.mjs';
import { fail, requireTools, run } from './tools.mjs';

const { values: options } = parseArgs({
  options: {
    architectures: { type: 'string', default: '' },
    'whisper-source': { type: 'string', default: '' },
    jobs: { type: 'string', default: String(availableParallelism()) },
  },
});

/**
 * Names the cuBLAS package of the Python package index for each generation of the toolkit, with the SHA-256 of its
 * wheels for x86-64 and for 64-bit ARM.
 */
const CUBLAS = {
  12: {
    pin: 'nvidia-cublas-cu12==12.9.1.4',
    sha256: [
      '453611eb21a7c1f2c2156ed9f3a45b691deda0440ec550860290dc901af5b4c2',
      '7a950dae01add3b415a5a5cdc4ec818fb5858263e9cca59004bb99fdbbd3a5d6',
    ],
    folder: 'nvidia/cublas',
  },
  13: {
    pin: 'nvidia-cublas==13.0.2.14',
    sha256: [
      '0cf238ffdbe46c00cb9aa98e7bca745c223a5ca5a53e686ac8b3e5a08fe80d6c',
      '17165c296de689662b96e0ef4f21dfbff3092ff00d0e3e59470f5acb08c0f87d',
    ],
    folder: 'nvidia/cu13',
  },
};
const build = gpuBuildFolder('cuda');

function output(command, args) {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? stdout : null;
}

/** Finds nvcc and the major version of its toolkit; ends the script where there is none. */
function findCompiler() {
  const folders = [process.env.CUDA_HOME, process.env.CUDA_PATH, '/usr/local/cuda'].filter(Boolean);
  const candidates = [
    ...(process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'nvcc')),
    ...folders.map((folder) => join(folder, 'bin', 'nvcc')),
  ];
  const nvcc = candidates.find((path) => existsSync(path));
  const version = nvcc && /release (\d+)\.(\d+)/.exec(output(nvcc, ['--version']) ?? '');
  if (!version) {
    fail(
      'The CUDA library cannot be built: nvcc was not found on PATH, in CUDA_HOME or in /usr/local/cuda.',
      'Install the CUDA toolkit (12.4 or newer), or build without it: npm run build',
    );
  }
  return { nvcc, major: Number(version[1]) };
}

/** Tells whether the toolkit has cuBLAS; nvcc itself names the folder of its headers. */
function toolkitHasCublas(nvcc) {
  const { stderr } = spawnSync(nvcc, ['--dryrun', '-x', 'cu', '-c', '/dev/null'], { encoding: 'utf8' });
  const top = /^#\$ TOP=(.*)$/m.exec(stderr ?? '')?.[1];
  return top !== undefined && existsSync(join(top, 'include/cublas_v2.h'));
}

/** Fetches cuBLAS and returns its folder; null when the toolkit brings it. */
function ensureCublas({ nvcc, major }) {
  if (toolkitHasCublas(nvcc)) return null;
  const cublas = CUBLAS[major];
  if (cublas === undefined) fail(`This toolkit (CUDA ${major}) has no cuBLAS, and none is known for it.`);
  const target = join(build, 'cublas');
  const folder = join(target, cublas.folder);
  if (!existsSync(join(folder, 'include/cublas_v2.h'))) {
    requireTools(['python', 'pip']);
    const requirements = join(build, 'cublas.txt');
    const hashes = cublas.sha256.map((sha256) => ` --hash=sha256:${sha256}`);
    writeFileSync(requirements, `${cublas.pin}${hashes.join('')}\n`);
    const install = ['-I', '-m', 'pip', 'install', '--quiet', '--no-deps', '--upgrade', '--target', target];
    const checked = ['--only-binary=:all:', '--require-hashes', '--requirement', requirements];
    run(`cuBLAS (${cublas.pin})`, 'python3', [...install, ...checked]);
  }
  return folder;
}

function architectures() {
  if (options.architectures !== '') return options.architectures;
  const capabilities = output('nvidia-smi', ['--query-gpu=compute_cap', '--format=csv,noheader']);
  return [...new Set(capabilities?.trim().split('\n'))].join(';').replaceAll('.', '');
}

const compiler = findCompiler();
const cublas = ensureCublas(compiler);
const chosen = architectures();
const definitions = [
  `-DCMAKE_CUDA_COMPILER=${compiler.nvcc}`,
  ...(chosen === '' ? [] : [`-DCMAKE_CUDA_ARCHITECTURES=${chosen}`]),
  ...(cublas === null ? [] : [`-DVOXGATE_CUBLAS=${cublas}`]),
];
buildGpuLibrary('cuda', definitions, {
  title: `Compile for ${chosen || 'every architecture'}`,
  jobs: options.jobs,
  whisperSource: options['whisper-source'],
});
