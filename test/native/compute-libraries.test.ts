/** Which of the compute libraries beside the addon are loaded, and what is said where none can be used. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { addonWithout, inProcess } from './addon-folder.ts';

let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'voxgate-libraries-'));
});
after(() => rm(dir, { recursive: true }));

async function compile(source: string, library: string, ...options: string[]): Promise<void> {
  await writeFile(`${library}.c`, source);
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, `${library}.c`, ...options]);
  await rm(`${library}.c`);
}

const LOAD_A_MODEL = `
  const error = await native
    .loadModel({ family: 'whisper', path: '/nowhere', device: 'cpu', threads: 1 })
    .then(() => null, (failure) => failure);
  console.log(error.code, error.message);`;

test('a library for GPUs is loaded only where a GPU may be used', async () => {
  const folder = await addonWithout(dir, 'libggml-cuda');
  await compile(
    `#include <stdio.h>
     __attribute__((constructor)) static void loaded(void) { puts("the driver was asked"); fflush(stdout); }`,
    join(folder, 'libggml-cuda.so'),
  );
  const names = 'console.log(native.info.devices.map(({ name }) => name).join());';
  assert.equal(await inProcess(folder, { gpus: false }, names), 'CPU\n');
  assert.match(await inProcess(folder, { gpus: true }, names), /^the driver was asked\n(.|\n)*CPU\n$/);
});

test('a library for another processor is said to be one', async () => {
  const folder = await addonWithout(dir, 'libggml-cpu');
  await compile('int ggml_backend_score(void) { return 0; }', join(folder, 'libggml-cpu.so'));
  const said = await inProcess(folder, { gpus: false }, LOAD_A_MODEL);
  assert.match(said, /^load_failed No CPU compute library can be used here; libggml-cpu\.so is compiled for/);
  assert.match(said, /npm run build/);
});

test('a library that cannot be loaded is named with the reason, and one that is not there is missed', async () => {
  const folder = await addonWithout(dir, 'libggml-cpu');
  assert.match(
    await inProcess(folder, { gpus: false }, LOAD_A_MODEL),
    /^load_failed No CPU compute library was found beside the addon/,
  );
  await writeFile(join(folder, 'libggml-cpu-haswell.so'), 'no library');
  assert.match(
    await inProcess(folder, { gpus: false }, LOAD_A_MODEL),
    /^load_failed No CPU compute library can be used here; libggml-cpu-haswell\.so cannot be loaded: .*too short/,
  );
});

const LEVEL = 'console.log(native.info.cpuLevel);';

test('the level of instructions is that of the library, and another one than it has cannot be named', async () => {
  const folder = await addonWithout(dir);
  const level = (await inProcess(folder, { gpus: false }, LEVEL)).trim();
  assert.match(
    level,
    /^(sse2|avx|avx2|avx2_vnni|avx512|avx512_vnni|avx512_bf16|amx|neon|neon_dotprod|neon_i8mm)$/,
  );
  assert.equal((await inProcess(folder, { gpus: false, cpu: level }, LEVEL)).trim(), level);
  const refused = `await import('node:assert/strict').then((assert) => assert.throws(
    () => loadNative(${JSON.stringify(join(folder, 'voxgate.node'))}, { cpu: 'sse9' }),
    { code: 'invalid_argument', message: ${JSON.stringify(`This process computes with ${level} already, not with sse9`)} }));`;
  await inProcess(folder, { gpus: false }, refused);
  await assert.rejects(
    inProcess(folder, { gpus: false, cpu: 'sse9' }, ''),
    /invalid_argument|This build has no kernels for sse9, only for: .*--cpu=all/,
  );
});

test('of several libraries the best that the processor has is taken, and every one of them can be named', async () => {
  const folder = await addonWithout(dir, 'libggml-cpu');
  // A library is asked how well it suits the processor, and for its level, before it is loaded.
  const library = (name: string, level: string, score: number) =>
    compile(
      `struct level { const char* name; int (*may)(void); void (*leave)(void); };
       static int no(void) { return 0; }
       static void nothing(void) {}
       static const struct level level = { "${level}", no, nothing };
       const struct level* voxgate_cpu_level(void) { return &level; }
       int ggml_backend_score(void) { return ${score}; }
       void* ggml_backend_init(void) { __builtin_puts("${level} is loaded"); __builtin_exit(0); }`,
      join(folder, `libggml-cpu-${name}.so`),
    );
  await library('a', 'avx2', 3);
  await library('b', 'avx512', 0);
  await library('c', 'avx', 2);
  const loaded = (cpu?: string) => inProcess(folder, { gpus: false, ...(cpu && { cpu }) }, '');
  assert.equal(await loaded(), 'avx2 is loaded\n');
  assert.equal(await loaded('avx'), 'avx is loaded\n');
  await assert.rejects(
    loaded('avx512'),
    /This processor does not have avx512; of this build it can use: avx, avx2/,
  );
});

const GPU_INFO = 'console.log(JSON.stringify({ ...native.info, loadErrors: native.gpuLoadErrors() }));';

test('a library for GPUs that cannot be loaded is named with the library that it misses', async () => {
  const folder = await addonWithout(dir, 'libggml-cuda');
  await compile('int cublas;', join(folder, 'libcublas.so.99'));
  await compile(
    '',
    join(folder, 'libggml-cuda.so'),
    `-L${folder}`,
    '-Wl,--no-as-needed',
    '-l:libcublas.so.99',
  );
  await rm(join(folder, 'libcublas.so.99'));
  const { gpuLibraries, loadErrors } = JSON.parse(await inProcess(folder, { gpus: true }, GPU_INFO));
  assert.deepEqual(gpuLibraries, ['cuda']);
  assert.match(loadErrors.cuda, /^libcublas\.so\.99: cannot open shared object file/);
});

test('a library for GPUs that finds none is loaded again only for who asks why', async () => {
  const folder = await addonWithout(dir, 'libggml-cuda');
  const source = `#include <stdio.h>
    __attribute__((constructor)) static void loaded(void) { puts("loaded"); fflush(stdout); }
    void* ggml_backend_init(void) { return NULL; }`;
  await compile(source, join(folder, 'libggml-cuda.so'));
  const times = async (script: string) =>
    (await inProcess(folder, { gpus: true }, script)).match(/loaded/g)?.length;
  assert.deepEqual([await times(''), await times('native.gpuLoadErrors()')], [1, 2]);
});

test('a CUDA library without a GPU says why, and for which GPUs it has code', async () => {
  const folder = await addonWithout(dir, 'libggml-cuda');
  // The interface of a library of ggml (ggml-backend-impl.h), as the one for CUDA fills it where its driver is too old.
  await compile(
    `#include <stddef.h>
     #include <string.h>
     void ggml_log_internal(int level, const char* format, ...);
     struct feature { const char* name; const char* value; };
     static struct feature features[] = { { "ARCHS", "800,900" }, { "NO_VMM", "1" }, { NULL, NULL } };
     static struct feature* get_features(void* reg) { return features; }
     static const char* name(void* reg) { return "CUDA"; }
     static size_t count(void* reg) { return 0; }
     static void* device(void* reg, size_t i) { return NULL; }
     static void* address(void* reg, const char* of) {
       return strcmp(of, "ggml_backend_get_features") == 0 ? (void*)get_features : NULL;
     }
     struct { int version; void *name, *count, *device, *address, *context; } reg =
       { 2, name, count, device, address, NULL };
     void* ggml_backend_init(void) {
       ggml_log_internal(4, "%s: failed to initialize CUDA: %s\\n", "ggml_cuda_init",
                         "CUDA driver version is insufficient for CUDA runtime version");
       return &reg;
     }`,
    join(folder, 'libggml-cuda.so'),
    ...[join(folder, 'libvoxgate-ggml-base.so'), '-Wl,-rpath,$ORIGIN'],
  );
  const script = `
    while (logged.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    console.log(JSON.stringify({ ...native.info, loadErrors: native.gpuLoadErrors(), logged }));`;
  const { cudaArchitectures, loadErrors, logged } = JSON.parse(
    await inProcess(folder, { gpus: true }, script),
  );
  assert.equal(cudaArchitectures, '800,900');
  assert.deepEqual(loadErrors, {});
  assert.match(
    logged.join('\n'),
    /^error: ggml_cuda_init: failed to initialize CUDA: CUDA driver version is/m,
  );
});
