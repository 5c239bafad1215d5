/** Distinguishes a folder or lock that is still in use from one that a dead process left behind. */

/** True when a process with this id runs on this machine, under any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // the process runs under another user
  }
}
