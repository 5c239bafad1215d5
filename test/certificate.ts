/** Certificates for tests of TLS, and what a process does that trusts them. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A key and a self-signed certificate for these names, which ends after `days`; a negative number has expired. */
export function certificateFor(names: string, days = 2) {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-certificate-'));
  const at = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });
  const [key, request, path, extensions] = [at('key.pem'), at('csr.pem'), at('cert.pem'), at('extensions')];
  writeFileSync(extensions, `subjectAltName=${names}\nbasicConstraints=CA:TRUE\n`);
  openssl(
    'req',
    '-new',
    '-newkey',
    'ed25519',
    '-nodes',
    '-keyout',
    key,
    '-out',
    request,
    '-subj',
    '/CN=test',
  );
  const signing = ['-signkey', key, '-days', String(days), '-extfile', extensions];
  openssl('x509', '-req', '-in', request, '-out', path, ...signing);
  const remove = () => rmSync(folder, { recursive: true });
  return { path, key: readFileSync(key), cert: readFileSync(path), [Symbol.dispose]: remove };
}

/** What a program prints that trusts a certificate: Node reads those of an environment once, at its start. */
export async function trusting(path: string, program: string): Promise<string> {
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: path },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = await Promise.all([child.stdout.toArray(), once(child, 'close')]);
  return Buffer.concat(output).toString();
}
