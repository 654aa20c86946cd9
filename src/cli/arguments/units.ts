// Durations and sizes as people write and read them.

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
export type DurationUnit = keyof typeof UNIT_MS;

/** "500ms", "1.5s", "2m"; a bare number counts seconds, as in sleep(1), or `bare`. Undefined when it is none of these. */
export function parseDuration(text: string, bare: DurationUnit = 's'): number | undefined {
  const match = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)?$/.exec(text);
  if (!match) return undefined;
  const unit = (match[2] ?? bare) as DurationUnit;
  const ms = Math.round(Number(match[1]) * UNIT_MS[unit]);
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** A time as people write it: a duration before now ("10m"), or a date with or without a time. Undefined when it is neither. */
export function parseMoment(text: string, nowMs: number): number | undefined {
  const ago = parseDuration(text);
  if (ago !== undefined) return nowMs - ago;
  if (!/^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}|$)/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Short, one or two units: "12ms", "3.1s", "4m 5s", "2h 3m", "5d 1h". */
export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1000) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9950 ? 1 : 0)}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** One unit, rounded down: "0s", "59s", "4m", "23h", "5d". */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** "812 B", "1.2 KB", "64 MB": powers of 1024. */
export function formatBytes(bytes: number): string {
  let amount = bytes;
  for (const unit of ['B', 'KB', 'MB', 'GB']) {
    if (amount < 1023.5 || unit === 'GB') {
      return `${unit === 'B' || amount >= 9.95 ? Math.round(amount) : amount.toFixed(1)} ${unit}`;
    }
    amount /= 1024;
  }
  return `${bytes} B`;
}

/** "1 process", "2 processes". */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
