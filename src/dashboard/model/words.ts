// Numbers and times as people read them, and text of others made safe to look at.

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

/** Powers of 1024, as on the command line: a limit of 64 MB reads the same in both. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1023.5 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 9.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** Two units at most: "3 d 4 h", "12 m", "8.1 s", "12 ms". */
export function durationText(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 0.095) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} m`;
  const days = Math.floor(hours / 24);
  return hours % 24 === 0 ? `${days} d` : `${days} d ${hours % 24} h`;
}

export function clockText(ms: number): string {
  const date = new Date(ms);
  const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0');
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

export function dateText(ms: number): string {
  const date = new Date(ms);
  const pad = (value: number): string => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${clockText(ms)}`;
}

export function countText(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** C0 and C1 controls, and the characters that turn the direction of text around. */
const HIDDEN =
  // oxlint-disable-next-line no-control-regex -- that is what it looks for
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Text of another author, on one line: what would be invisible or turn text around is shown as its number. */
export function visibleText(text: string): string {
  return text.replace(HIDDEN, (character) => {
    if (character === '\n') return ' ⏎ ';
    if (character === '\t') return ' ';
    return `⟨${(character.codePointAt(0) ?? 0).toString(16).padStart(2, '0')}⟩`;
  });
}
