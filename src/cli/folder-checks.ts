/** Whether the folders that a gateway writes to can be written, for `voxgate doctor` and for the start of `voxgate serve`. */
import { access, constants, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Config } from '../config/config.ts';

export interface Finding {
  /** A problem keeps the gateway, or a part that is switched on, from working. */
  state: 'ok' | 'warning' | 'problem';
  says: string;
}

export const ok = (says: string): Finding => ({ state: 'ok', says });
export const warning = (says: string): Finding => ({ state: 'warning', says });
export const problem = (says: string): Finding => ({ state: 'problem', says });

/** The folders of what is switched on. */
export function folderChecks(config: Config): { name: string; run(): Promise<Finding> }[] {
  const { accessLog, logDir, payload, payloadDir } = config.observability;
  const folder = (name: string, path: string, bad: typeof problem, setting: string) => ({
    name,
    run: () => writable(path, bad, setting),
  });
  return [
    folder('models', config.modelDir, config.modelDownload ? problem : warning, 'SVC_MODEL_DIR'),
    folder('uploads', config.tmpDir, problem, 'SVC_TMP_DIR'),
    folder('crashes', config.crashDir, warning, 'SVC_CRASH_DIR'),
    ...(accessLog && logDir !== '-' ? [folder('access log', logDir, problem, 'SVC_OBS_LOG_DIR')] : []),
    ...(payload ? [folder('captures', payloadDir, problem, 'SVC_OBS_PAYLOAD_DIR')] : []),
  ];
}

export async function writable(path: string, bad: typeof problem, setting: string): Promise<Finding> {
  const existing = await nearestExisting(path);
  const user = process.geteuid?.() ?? 'this user';
  try {
    if (!(await stat(existing)).isDirectory())
      return bad(`${existing} is not a folder: set ${setting} to one`);
    await access(existing, constants.W_OK | constants.X_OK);
    return ok(existing === path ? path : `${path} will be made`);
  } catch (error) {
    const isReadOnly = (error as NodeJS.ErrnoException).code === 'EROFS';
    const why = isReadOnly
      ? `${existing} is on a read-only file system: mount it to be written`
      : `user ${user} may not write to ${existing}: change its owner`;
    return bad(`${why}, or set ${setting} to another folder`);
  }
}

export async function nearestExisting(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const exists = await stat(at).then(
      () => true,
      () => false,
    );
    if (exists || at === dirname(at)) return at;
  }
}
