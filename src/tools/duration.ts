// Durations as models write them, in Go's notation ("1m30s", "500ms"). A bare number counts seconds.

const UNIT_MS = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** Milliseconds, rounded up, possibly negative; undefined if the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  const match = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|\d+\.?\d*|\.\d+)$/.exec(
    text.trim(),
  );
  if (!match) return undefined;
  const [, sign, amount = ''] = match;
  const parts = Array.from(amount.matchAll(/([\d.]+)([a-zµμ]*)/g));
  const ms = parts.reduce(
    (total, [, number, unit]) => total + Number(number) * (UNIT_MS.get(unit || 's') ?? 0),
    0,
  );
  const rounded = Math.ceil(ms);
  if (!Number.isSafeInteger(rounded)) return undefined;
  return sign === '-' ? -rounded : rounded;
}

export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 100) / 10;
  if (seconds < 60) return `${seconds}s`;
  const whole = Math.round(ms / 1000);
  const [hours, minutes, rest] = [
    Math.floor(whole / 3600),
    Math.floor(whole / 60) % 60,
    whole % 60,
  ];
  const parts = [hours > 0 ? `${hours}h` : '', minutes > 0 ? `${minutes}m` : ''];
  return parts.join('') + (rest > 0 ? `${rest}s` : '');
}
