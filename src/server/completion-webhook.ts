// The completion webhook: posts every completion, signed, to one URL until it answers 2xx. Delivered ones are
// acknowledged in the host's completion feed, so a restart forgets none; one may be delivered twice.

import { createHmac } from 'node:crypto';
import { Agent, request as httpRequest } from 'node:http';
import { Agent as SecureAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '../base/clock.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { isLoopback } from './http/listen.ts';
import { EVERYONE, type Completion, type HostApi } from '../protocol/host-api.ts';
import { chatOfOwner } from './coder/chat-scope.ts';

export interface WebhookTarget {
  readonly url: string;
  /** Allows plain HTTP to another machine, where everyone on the way can read it. */
  readonly insecure?: boolean;
}

interface WebhookOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly target: WebhookTarget;
  readonly secret: string;
  readonly report: (message: string) => void;
}

const SUBSCRIBER = 'webhook';
const PAGE_SIZE = 100;
const RESPONSE_TIMEOUT_MS = 10_000;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** The host answers as soon as there is a completion. */
const WAIT_MS = 24 * 60 * 60_000;

/** refused: the receiver answered, but not with 2xx. unreachable: there was no answer. */
type Delivery = 'delivered' | 'refused' | 'unreachable';

export class CompletionWebhook {
  private readonly options: WebhookOptions;
  private readonly url: URL;
  private readonly agent: Agent;
  private readonly ending = new AbortController();
  private running: Promise<void> | undefined;
  /** A failure is reported once, and again after a delivery succeeded in between. */
  private reported = false;

  constructor(options: WebhookOptions) {
    this.options = options;
    this.url = checkedUrl(options.target);
    const pool = { keepAlive: true, maxSockets: 1 };
    this.agent = this.url.protocol === 'https:' ? new SecureAgent(pool) : new Agent(pool);
  }

  open(): void {
    this.running ??= this.run();
  }

  async close(): Promise<void> {
    this.ending.abort();
    await this.running;
    this.agent.destroy();
  }

  private async run(): Promise<void> {
    for (let pauseMs = 0; !this.ending.signal.aborted;) {
      const ok = await this.round();
      pauseMs = ok ? 0 : Math.min(Math.max(FIRST_PAUSE_MS, pauseMs * 2), LONGEST_PAUSE_MS);
      if (!ok) await this.pause(pauseMs);
    }
  }

  /** Delivers all open completions once, in order, a page at a time. True if all were delivered. */
  private async round(): Promise<boolean> {
    const { signal } = this.ending;
    let ok = true;
    try {
      for (let after = 0, waitMs = WAIT_MS; ; waitMs = 0) {
        const page = await this.page({ after, waitMs });
        for (const completion of page) {
          const delivery = await this.deliver(completion);
          if (delivery === 'delivered') await this.acknowledge(completion);
          else ok = false;
          // Without a receiver, the next one is not tried.
          if (delivery === 'unreachable') return false;
          // A refused completion does not hold up the ones behind it.
          after = completion.number;
        }
        if (page.length < PAGE_SIZE) return ok;
      }
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (!signal.aborted) this.reportOnce(error.message);
      return false;
    }
  }

  private async page(from: { after: number; waitMs: number }): Promise<readonly Completion[]> {
    const { host } = this.options;
    const params = { subscriber: SUBSCRIBER, limit: PAGE_SIZE, ...from };
    return (await host.completions(EVERYONE, params, this.ending.signal)).completions;
  }

  private async acknowledge({ number }: Completion): Promise<void> {
    const { host } = this.options;
    await host.acknowledge(EVERYONE, { subscriber: SUBSCRIBER, numbers: [number] });
    this.reported = false;
  }

  private async deliver(completion: Completion): Promise<Delivery> {
    try {
      const status = await this.post(JSON.stringify(toNotice(completion)), completion.number);
      if (status >= 200 && status < 300) return 'delivered';
      this.reportOnce(`it answered ${status}`);
      return 'refused';
    } catch (error) {
      if (!this.ending.signal.aborted) this.reportOnce((error as Error).message);
      return 'unreachable';
    }
  }

  /** Redirects are not followed: nobody here chose their target. */
  private post(text: string, number: number): Promise<number> {
    const { clock, secret } = this.options;
    const body = Buffer.from(text);
    const at = Math.floor(clock.wallMs() / 1000);
    const signature = createHmac('sha256', secret).update(`${at}.`).update(body).digest('hex');
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      'User-Agent': 'holdfast',
      'Holdfast-Delivery': String(number),
      'Holdfast-Signature': `t=${at},v1=${signature}`,
    };
    const limit = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    const signal = AbortSignal.any([limit, this.ending.signal]);
    const send = this.url.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', agent: this.agent, headers, signal };
      const request = send(this.url, options, (response) => {
        response.once('end', () => resolve(response.statusCode ?? 0));
        response.once('error', reject);
        response.resume();
      });
      request.once('error', reject);
      request.end(body);
    });
  }

  private reportOnce(reason: string): void {
    if (this.reported) return;
    this.reported = true;
    this.options.report(`the completion webhook failed and will be retried: ${reason}.`);
  }

  private pause(ms: number): Promise<void> {
    const { signal } = this.ending;
    return new Promise((resolve) => {
      const over = (): void => {
        cancel();
        signal.removeEventListener('abort', over);
        resolve();
      };
      const cancel = this.options.clock.after(ms, over);
      signal.addEventListener('abort', over);
      if (signal.aborted) over();
    });
  }
}

/** Without the output: a receiver that wants it has a token to read it. */
function toNotice(completion: Completion): Record<string, unknown> {
  const { lastLines: _printed, ...notice } = completion;
  const { labels = {}, owner } = completion;
  const chat = chatOfOwner(owner);
  const { ancestors = '', workdir } = labels;
  return {
    type: 'completion',
    ...notice,
    ...(chat !== undefined && {
      chat: { id: chat, ancestors: ancestors.split(' ').filter((each) => each !== '') },
    }),
    ...(workdir !== undefined && { workdir }),
  };
}

function checkedUrl({ url, insecure = false }: WebhookTarget): URL {
  const wrong = (problem: string): HoldfastError =>
    new HoldfastError('invalid_input', `The completion webhook ${problem}.`, { field: 'webhook' });
  if (!URL.canParse(url)) throw wrong('is not a URL');
  const parsed = new URL(url);
  if (parsed.protocol !== 'https:' && parsed.protocol !== 'http:')
    throw wrong('must begin with https:// or http://');
  if (parsed.username !== '' || parsed.password !== '')
    throw wrong('must not carry a password: every local user can read arguments');
  if (
    parsed.protocol === 'http:' &&
    !insecure &&
    !isLoopback(parsed.hostname.replace(/^\[|\]$/g, ''))
  )
    throw wrong('is on another machine: use https://, or allow plain HTTP explicitly');
  return parsed;
}
