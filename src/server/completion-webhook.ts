// The completion webhook: one URL is told of every end, signed, until it says that it has it. What it has is acknowledged
// in the host's completion feed, so a restart of the server forgets nothing; the same end may be told twice.

import { createHmac } from 'node:crypto';
import { Agent, request as httpRequest } from 'node:http';
import { Agent as SecureAgent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { Clock } from '../base/clock.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type Completion, type HostApi } from '../protocol/host-api.ts';
import { chatOfOwner } from './coder/chat-scope.ts';

export interface WebhookTarget {
  readonly url: string;
  /** Plain HTTP to another machine, where everybody on the way can read it. */
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
const AT_ONCE = 100;
const ANSWER_MS = 10_000;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** As long as it takes: the host answers when there is something. */
const WAIT_MS = 24 * 60 * 60_000;

/** had: acknowledged. refused: somebody is there and does not want it now. silent: nobody is there. */
type Telling = 'had' | 'refused' | 'silent';

export class CompletionWebhook {
  private readonly options: WebhookOptions;
  private readonly url: URL;
  private readonly agent: Agent;
  private readonly ending = new AbortController();
  private running: Promise<void> | undefined;
  /** Said once, and again after it worked in between. */
  private complained = false;

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
      const well = await this.round();
      pauseMs = well ? 0 : Math.min(Math.max(FIRST_PAUSE_MS, pauseMs * 2), LONGEST_PAUSE_MS);
      if (!well) await this.pause(pauseMs);
    }
  }

  /** Everything that is open, once, in order, a page at a time. Whether all of it was taken. */
  private async round(): Promise<boolean> {
    const { signal } = this.ending;
    let well = true;
    try {
      for (let after = 0, waitMs = WAIT_MS; ; waitMs = 0) {
        const page = await this.page({ after, waitMs });
        for (const completion of page) {
          const telling = await this.tell(completion);
          if (telling === 'had') await this.acknowledge(completion);
          else well = false;
          // Where nobody answers, the next is not tried.
          if (telling === 'silent') return false;
          // One that is refused holds up nobody else's: behind it there is more.
          after = completion.number;
        }
        if (page.length < AT_ONCE) return well;
      }
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (!signal.aborted) this.complain(error.message);
      return false;
    }
  }

  private async page(from: { after: number; waitMs: number }): Promise<readonly Completion[]> {
    const { host } = this.options;
    const params = { subscriber: SUBSCRIBER, limit: AT_ONCE, ...from };
    return (await host.completions(EVERYONE, params, this.ending.signal)).completions;
  }

  private async acknowledge({ number }: Completion): Promise<void> {
    const { host } = this.options;
    await host.acknowledge(EVERYONE, { subscriber: SUBSCRIBER, numbers: [number] });
    this.complained = false;
  }

  private async tell(completion: Completion): Promise<Telling> {
    try {
      const status = await this.post(JSON.stringify(noticeOf(completion)), completion.number);
      if (status >= 200 && status < 300) return 'had';
      this.complain(`it answered ${status}`);
      return 'refused';
    } catch (error) {
      if (!this.ending.signal.aborted) this.complain((error as Error).message);
      return 'silent';
    }
  }

  /** Redirects are not followed: what they lead to was chosen by nobody here. */
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
    const limit = AbortSignal.timeout(ANSWER_MS);
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

  private complain(reason: string): void {
    if (this.complained) return;
    this.complained = true;
    this.options.report(`the completion webhook does not take what it is told: ${reason}.`);
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

/** Without what it printed: who wants that has a token to ask for it. */
function noticeOf(completion: Completion): Record<string, unknown> {
  const { lastLines: _printed, ...told } = completion;
  const { labels = {}, owner } = completion;
  const chat = chatOfOwner(owner);
  const { ancestors = '', workdir } = labels;
  return {
    type: 'completion',
    ...told,
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
  if (parsed.protocol === 'http:' && !insecure && !isNear(parsed.hostname))
    throw wrong('is on another machine: use https://, or allow plain HTTP explicitly');
  return parsed;
}

function isNear(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return bare === 'localhost' || bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'));
}
