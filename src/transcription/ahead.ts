/**
 * Works one item ahead of whoever takes them: the next chunk is decoded and searched for speech while the engine
 * is busy with the one before.
 */

/**
 * @param source is told to stop by `stop`, so that whoever leaves early need not wait for an item nobody wants
 */
export async function* ahead<T>(source: AsyncGenerator<T>, stop: AbortController): AsyncGenerator<T> {
  let next = source.next();
  try {
    for (let item = await next; item.done !== true; item = await next) {
      next = source.next();
      next.catch(() => undefined); // looked at in its turn
      yield item.value;
    }
  } finally {
    stop.abort();
    await next.catch(() => undefined);
    await source.return(undefined);
  }
}
