// Times and durations of runs for readers. Times are ISO 8601 in UTC with microseconds. Pure.

export function microsecondsOf(time: string): number {
  return Date.parse(`${time.slice(0, 19)}Z`) * 1000 + Number(time.slice(20, 26));
}

/** `2026-11-20 12:00:00.123` */
export function formatTime(time: string): string {
  return time.slice(0, 23).replace('T', ' ').replace(/Z$/, '');
}

/** With three digits that count. Clocks of clients may run backwards. */
export function formatDuration(microseconds: number): string {
  const [size, sign] = [Math.abs(microseconds), microseconds < 0 ? '-' : ''];
  if (size < 1_000) return `${sign}${size} µs`;
  if (size < 1_000_000) return `${sign}${toThree(size / 1_000)} ms`;
  if (size < 60_000_000) return `${sign}${toThree(size / 1_000_000)} s`;
  const seconds = Math.round(size / 1_000_000);
  if (seconds < 3_600) return `${sign}${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${sign}${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

function toThree(number: number): string {
  return number.toFixed(number < 10 ? 2 : number < 100 ? 1 : 0);
}
