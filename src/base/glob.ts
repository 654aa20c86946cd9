// Globs over names: "*" matches any characters, "?" one character; case-insensitive. Matching backtracks to the last "*"
// only, so it takes at most name times glob steps; a budget limits the steps over all names.

/** The patterns and names need more steps than the budget allows. */
export class GlobTooLong extends Error {
  constructor() {
    super('the patterns and the names are too long to be compared');
    this.name = 'GlobTooLong';
  }
}

/** About a tenth of a second. A hundred patterns over a thousand names take a tenth of the budget. */
const MAX_STEPS = 20_000_000;

/** Returns a function that tells whether any glob matches a name. It throws GlobTooLong when the budget is used up. */
export function globMatcher(
  globs: readonly string[],
  maxSteps = MAX_STEPS,
): (name: string) => boolean {
  if (globs.length === 0) return () => false;
  const folded = globs.map(fold);
  let left = maxSteps;
  const step = (): void => {
    left -= 1;
    if (left < 0) throw new GlobTooLong();
  };
  return (name) => {
    const letters = fold(name);
    return folded.some((glob) => matches(glob, letters, step));
  };
}

/** Folds each character by itself, so that their number does not change. */
function fold(text: string): string[] {
  return Array.from(text, (letter) => letter.toLowerCase());
}

function matches(glob: readonly string[], name: readonly string[], step: () => void): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  for (let index = 0; index < name.length;) {
    step();
    if (glob[at] === '*') {
      star = at;
      at += 1;
      resume = index;
    } else if (at < glob.length && (glob[at] === '?' || glob[at] === name[index])) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      // Backtrack: the last star matches one more character.
      at = star + 1;
      resume += 1;
      index = resume;
    } else {
      return false;
    }
  }
  while (glob[at] === '*') at += 1;
  return at === glob.length;
}
