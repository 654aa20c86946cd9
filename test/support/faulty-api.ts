// A connection with faults: some operations fail, or are answered otherwise, before they reach the real one.

import type { Api } from '../../src/client/api.ts';
import { HoldfastError } from '../../src/protocol/errors.ts';

export function withFaults(api: Api, faults: Partial<Api>): Api {
  return { ...api, ...faults };
}

export function broken(message: string): () => Promise<never> {
  return () => Promise.reject(new HoldfastError('keeper_unreachable', message));
}
