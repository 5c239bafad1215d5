/**
 * The places for uploads. A request has one from before its body is read until its file is removed, so that what
 * uploads hold, and what is done with them before the slot, is bounded by their number. When all places are taken, a
 * client that sends too slowly loses its place to a new one, so that slow clients cannot shut out the others.
 */
import { GatewayError } from '../errors.ts';

export interface UploadPlace {
  /** Names how far the client is behind, and how to end its upload, while it is received. */
  receiving(upload: Receiving | null): void;
  /** Frees the place. Idempotent. */
  release(): void;
}

export interface Receiving {
  owedMs(): number;
  giveUp(reason: GatewayError): void;
}

/** @param options.yieldMs how far a client must be behind the least rate to lose its place */
export function createUploadPlaces(options: { maxUploads: number; yieldMs: number }): {
  /** @throws GatewayError `overloaded` when all places are taken by clients that keep the least rate */
  take(): UploadPlace;
} {
  const taken = new Map<UploadPlace, Receiving | null>();

  function makeRoom(): void {
    let slowest: { place: UploadPlace; upload: Receiving } | null = null;
    for (const [place, upload] of taken) {
      if (upload !== null && upload.owedMs() > (slowest?.upload.owedMs() ?? 0)) slowest = { place, upload };
    }
    if (slowest === null || slowest.upload.owedMs() < options.yieldMs)
      throw new GatewayError('overloaded', {});
    taken.delete(slowest.place);
    slowest.upload.giveUp(
      new GatewayError('client_stalled', { what: 'sent too slowly while others waited' }),
    );
  }

  return {
    take() {
      if (taken.size >= options.maxUploads) makeRoom();
      const place: UploadPlace = {
        receiving(upload) {
          if (taken.has(place)) taken.set(place, upload);
        },
        release: () => void taken.delete(place),
      };
      taken.set(place, null);
      return place;
    },
  };
}
