/** The first source of weights: a Hugging Face hub, over its plain download addresses. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { withoutTrailingSlashes } from '../url-base.ts';
import { requireSpace, syncFolder } from './disk.ts';
import { type DownloadLimits, download } from './download.ts';
import type { ModelSource } from './source.ts';
import type { HubFile, Precision, Weights } from './weights.ts';

const DEFAULT_HUB = 'https://huggingface.co';

export interface HubOptions {
  /** HF_ENDPOINT. */
  endpoint?: string | undefined;
  /** HF_TOKEN; sent to the endpoint's own host only. */
  token?: string | undefined;
  limits?: Partial<DownloadLimits> | undefined;
}

/** The wanted precision where it is published, else the one it can be made from. */
export function publishedFile(model: Weights, precision: Precision): HubFile | undefined {
  return model.files[precision] ?? model.files.f16 ?? model.files.q8_0;
}

export function createHubSource({ endpoint = DEFAULT_HUB, token, limits }: HubOptions = {}): ModelSource {
  const base = withoutTrailingSlashes(endpoint);
  const { origin, pathname } = new URL(base);
  return {
    // Not the address itself: it may carry credentials, and the name is written into the log.
    name: `hub ${origin}${pathname.replace(/\/$/, '')}`,
    offers: () => true,
    async fetch({ model, precision, dir, signal, report }) {
      const published = publishedFile(model, precision);
      if (!published) throw new Error(`nothing is published for ${model.id}`);
      const { repo, revision, file, bytes, sha256 } = published;
      const target = join(dir, file);
      if (bytes !== null) {
        const partial = await stat(`${target}.part`).catch(() => null);
        await requireSpace(dir, Math.max(0, bytes - (partial?.size ?? 0)));
      }
      const written = await download({
        url: `${base}/${repo}/resolve/${revision}/${file}`,
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
