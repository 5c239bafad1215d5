/** The first source of weights: a Hugging Face hub, through its plain download URLs. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { requireSpace, syncFolder } from './disk.ts';
import { type DownloadLimits, download, partOf } from './download.ts';
import type { ModelSource } from './source.ts';
import type { HubFile, Precision, Weights } from './weights.ts';

export interface HubOptions {
  /** The base URL of the hub (HF_ENDPOINT), without a slash at its end. */
  endpoint: string;
  /** The access token (HF_TOKEN), which is sent to the origin of the endpoint only. */
  token?: string | undefined;
  limits?: Partial<DownloadLimits> | undefined;
}

/** The file of the wanted precision if it is published, else the f16 file, else the q8_0 file. */
export function publishedFile(model: Weights, precision: Precision): HubFile | undefined {
  return model.files[precision] ?? model.files.f16 ?? model.files.q8_0;
}

/** A source whose `fetch` rejects with an Error that names the host and the reason. */
export function createHubSource({ endpoint, token, limits }: HubOptions): ModelSource {
  const { origin, pathname } = new URL(endpoint);
  return {
    // The name goes into the log, so it leaves out the credentials that the address may hold.
    name: `hub ${origin}${pathname.replace(/\/$/, '')}`,
    offers: (model) => publishedFile(model, 'q8_0') !== undefined,
    async fetch({ model, precision, dir, signal, report }) {
      const published = publishedFile(model, precision);
      if (!published) throw new Error(`nothing is published for ${model.id}`);
      const { repo, revision, file, bytes, sha256 } = published;
      const target = join(dir, file);
      if (bytes !== null) {
        const partial = await stat(partOf(target).path).catch(() => null);
        await requireSpace(dir, Math.max(0, bytes - (partial?.size ?? 0)));
      }
      const written = await download({
        url: `${endpoint}/${repo}/resolve/${revision}/${file}`,
        target,
        bytes,
        sha256,
        token,
        signal,
        limits,
        onProgress: (doneBytes, totalBytes) =>
          report({ phase: 'downloading', what: file, doneBytes, totalBytes }),
      });
      await syncFolder(dir);
      return { file, ...written };
    },
  };
}
