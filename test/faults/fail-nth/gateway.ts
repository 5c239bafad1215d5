/**
 * Runs a gateway over the small weights of `weights.ts`, in a process of its own, so that calls of the system can fail
 * in it. Its argument is the folder of everything; it prints its port.
 */
import { readdirSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import winston from 'winston';
import { buildApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config/config.ts';
import { loadNative } from '../../../src/engine/addon.ts';
import { createHubSource } from '../../../src/models/hub.ts';
import { createModelStore } from '../../../src/models/store.ts';
import { sha256 } from '../../model/hub-server.ts';
import { FAMILIES, FETCHED } from './weights.ts';

const dir = process.argv[2] ?? '';
const log = winston.createLogger({ level: 'info', transports: [new winston.transports.Console()] });
const { config } = readConfig({
  ...process.env,
  ...{ SVC_PORT: '0', SVC_THREADS: '2', SVC_MODEL_KEEP_ALIVE_SEC: '-1' },
  ...{ SVC_MODEL_DIR: join(dir, 'models'), SVC_TMP_DIR: join(dir, 'spool') },
  ...{ SVC_OBS_LOG_DIR: join(dir, 'logs'), SVC_OBS_PAYLOAD_DIR: join(dir, 'payloads') },
});
const engine = loadNative();
engine.setLogger(() => undefined);
const catalogue = readdirSync(join(dir, 'weights')).map((file) => {
  const data = readFileSync(join(dir, 'weights', file));
  const id = file.replace(/\.bin$/, '');
  const family = FAMILIES[id] ?? 'whisper';
  const published = { repo: 'some/repo', revision: 'abc', file, bytes: data.length, sha256: sha256(data) };
  return { id, family, provider: id, files: { q8_0: published }, derived: [] };
});
const limits = { attempts: 2, backoffMs: 5, connectTimeoutMs: 1000, stallTimeoutMs: 5000 };
const store = createModelStore({
  dir: config.modelDir,
  download: true,
  precision: 'q8_0',
  sources: [createHubSource({ endpoint: config.hubEndpoint, limits })],
  quantize: (job) => engine.quantize(job),
  log,
  catalogue,
});
const app = buildApp(config, {
  log,
  engine,
  device: { device: 'cpu', gpu: false },
  store,
  crashes: { list: () => [] },
});
app.server.listen(0, '127.0.0.1', () => {
  const { port } = app.server.address() as AddressInfo;
  process.stdout.write(`${FETCHED} is fetched; listens on ${port}\n`);
});
process.once('SIGTERM', () => void app.close().then(() => process.exit(0)));
