// Cases that take long: `npm run test:slow` (SLOW=1) runs them whole, `npm test` in a short form that guards the same.

export const isSlowRun = process.env['SLOW'] !== undefined;

/** How often, or how much: of the short form and of the whole. */
export function sized(short: number, whole: number): number {
  return isSlowRun ? whole : short;
}
