// What the parts of this dialect share: what they need, who a call acts for, and the headers of every stream.

import type { Clock } from '../../base/clock.ts';
import type { HostApi, Owner } from '../../protocol/host-api.ts';
import type { Handover } from '../handover.ts';
import type { StartRate } from '../start-rate.ts';
import type { Sandbox } from './sandbox-store.ts';

/** Who a call of the data plane acts for. */
export interface Target {
  readonly owner: Owner;
  /** Absent in debug mode. */
  readonly sandbox?: Sandbox;
  readonly admin: boolean;
}

export const STREAM_HEADERS = {
  'Content-Type': 'application/connect+json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
};

export interface E2bOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly startRate: StartRate;
  /** Lets the keeper write the streams of processes, if it can. */
  readonly handover?: Handover;
  readonly defaultDirectory?: string | undefined;
}
