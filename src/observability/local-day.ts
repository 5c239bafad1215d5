/** Days in the time zone of the machine, by which the access log and the captures are filed. */

/** The local day as `YYYY-MM-DD`. */
export function localDay(at: Date): string {
  const two = (n: number) => String(n).padStart(2, '0');
  return `${String(at.getFullYear()).padStart(4, '0')}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** The end of `day` in epoch milliseconds; NaN when `day` is not a date. A day may have 23 or 25 hours. */
export function endOfLocalDay(day: string): number {
  const [year, month, date] = day.split('-').map(Number);
  if (year === undefined || month === undefined || date === undefined) return Number.NaN;
  return new Date(year, month - 1, date + 1).getTime();
}
