// Globs over names: "*" stands for any characters, "?" for one, and case does not matter. A match goes back to the last
// "*" only, so its work is at most name times glob; a budget bounds the sum over all names that are asked about.

/** Names and globs are too long together to be compared. */
export class GlobTooLong extends Error {
  constructor() {
    super('the patterns and the names are too long to be compared');
    this.name = 'GlobTooLong';
  }
}

/** Steps for all names together: about a tenth of a second. A hundred patterns and a thousand names take a tenth of it. */
const MAX_STEPS = 20_000_000;

/** Whether one of the globs matches a name. Throws GlobTooLong when the budget is used up. */
export function globMatcher(
  globs: readonly string[],
  maxSteps = MAX_STEPS,
): (name: string) => boolean {
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

/** By character, so that folding never changes how many there are. */
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
      // The last star takes one character more.
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
