// What the modern requests of one owner share, because each has a server of its own: the places that a caller has read up
// to, and the watch of processes whose output grows.

import * as v from 'valibot';
import { systemClock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { ProcessWatch } from '../process/watch.ts';
import { Toolbox } from '../toolbox.ts';
import { processOf } from './resources.ts';
import type { McpOptions } from './server.ts';

/** The library serves the request itself and tells nobody which outputs it names. */
const listening = v.object({
  method: v.literal('subscriptions/listen'),
  params: v.object({ notifications: v.object({ resourceSubscriptions: v.array(v.string()) }) }),
});

export class SharedTools {
  readonly toolbox: Toolbox;
  readonly watch: ProcessWatch;
  private readonly report: (error: unknown) => void;

  constructor(
    options: McpOptions,
    notify: { outputGrew: (id: string) => void; leftRunning: () => void },
  ) {
    const { clock = systemClock, coalesceMs, report = () => undefined } = options;
    this.watch = new ProcessWatch({
      connect: async () => (await this.toolbox.context()).api,
      clock,
      outputGrew: notify.outputGrew,
      ended: () => undefined,
      report,
      ...(coalesceMs !== undefined && { coalesceMs }),
    });
    const leftRunning = (id: string): void => {
      notify.leftRunning();
      this.watch.watchGrowth(id).catch(report);
    };
    this.toolbox = new Toolbox({ ...options, leftRunning });
    this.report = report;
  }

  /**
   * Watches the outputs that a request wants to listen to: their processes may be another client's, or older than this
   * server. Those that are not found are left out, as if they never grew.
   */
  async watchListened(message: unknown): Promise<void> {
    const parsed = v.safeParse(listening, message);
    if (!parsed.success) return;
    for (const uri of parsed.output.params.notifications.resourceSubscriptions) {
      const id = processOf(uri);
      if (id !== undefined) await this.watch.watchGrowth(id).catch(this.reportUnlessMissing);
    }
  }

  private readonly reportUnlessMissing = (error: unknown): void => {
    if (!(error instanceof HoldfastError) || error.code !== 'not_found') this.report(error);
  };
}
