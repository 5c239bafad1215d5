/**
 * The build configures for macOS, and tells its linker what that of macOS understands. Clang compiles for it here as far
 * as CMake's own probes go; the headers and libraries of Apple are not there, so nothing is compiled or linked.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';

const ROOT = new URL('../../', import.meta.url).pathname;

/** @returns the options of the linker, by the name of what it links */
function linked(t: TestContext, processor: string, cpu: string): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-macos-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'sw_vers'), '#!/bin/sh\necho 14.0\n'); // CMake asks it for the version of macOS
  chmodSync(join(folder, 'sw_vers'), 0o755);
  writeFileSync(
    join(folder, 'macos.cmake'),
    `set(CMAKE_SYSTEM_NAME Darwin)
    set(CMAKE_SYSTEM_VERSION 23.0)
    set(CMAKE_SYSTEM_PROCESSOR ${processor})
    foreach(language C CXX)
      set(CMAKE_\${language}_COMPILER_TARGET ${processor}-apple-macos14)
    endforeach()
    set(CMAKE_C_COMPILER clang)
    set(CMAKE_CXX_COMPILER clang++)
    set(CMAKE_INSTALL_NAME_TOOL /bin/false)
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
    set(CMAKE_FIND_ROOT_PATH ${folder})
    set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)`,
  );
  const settings = {
    ...{ CMAKE_TOOLCHAIN_FILE: join(folder, 'macos.cmake'), CMAKE_BUILD_TYPE: 'Release', VOXGATE_CPU: cpu },
    ...{ CMAKE_JS_INC: folder, CMAKE_LIBRARY_OUTPUT_DIRECTORY: join(folder, 'Release') },
  };
  const options = Object.entries(settings).map(([name, value]) => `-D${name}=${value}`);
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
  const build = join(folder, 'build');
  const run = spawnSync('cmake', ['-S', ROOT, '-B', build, '-G', 'Ninja', ...options], {
    ...{ env, encoding: 'utf8' },
  });
  assert.equal(run.status, 0, run.stdout + run.stderr);
  const rules = readFileSync(join(build, 'build.ninja'), 'utf8');
  const steps = rules.matchAll(/^build \S*Release\/(\S+?):? .*_LIBRARY_LINKER__.*\n((?: {2}.*\n)+)/gm);
  return Object.fromEntries([...steps].map(([, name, step]) => [name, step ?? '']));
}

for (const [processor, cpu, libraries] of [
  ['arm64', 'native', ['libggml-cpu.so']],
  ['arm64', 'all', ['libggml-cpu-apple_m1.so', 'libggml-cpu-apple_m2_m3.so']],
  ['x86_64', 'avx2', ['libggml-cpu.so']],
] as const) {
  test(`the build for macOS on ${processor} with --cpu=${cpu} finds its libraries beside the addon`, (t) => {
    const steps = linked(t, processor, cpu);
    assert.deepEqual(
      Object.keys(steps).sort(),
      [...libraries, 'libvoxgate-ggml-base.dylib', 'libvoxgate-ggml.dylib', 'voxgate.node'].sort(),
    );
    for (const [name, step] of Object.entries(steps)) {
      assert.match(step, /-Wl,-rpath,@loader_path\s/, name);
      if (name.endsWith('.dylib')) assert.match(step, /INSTALLNAME_DIR = @rpath\//, name);
      assert.doesNotMatch(step, /ORIGIN|--wrap|--version-script|-z,nodelete|-Bsymbolic/, name);
    }
    assert.match(steps['voxgate.node'] ?? '', /-undefined \S*\s?dynamic_lookup/, 'Node has its symbols');
  });
}
