// How many bytes may be under way in one tunnel. All tunnels of a connection share what NATS holds for it without trouble.

const LARGEST_BYTES = 1024 * 1024;
const SMALLEST_BYTES = 32 * 1024;
const ALL_BYTES = 24 * 1024 * 1024;

export function windowBytes(tunnels: number): number {
  return Math.max(SMALLEST_BYTES, Math.min(LARGEST_BYTES, Math.floor(ALL_BYTES / tunnels)));
}
