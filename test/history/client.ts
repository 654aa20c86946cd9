// One caller of many: does one thing after another to its own processes, looks at those of its owner, and tells the model
// what it was answered. What fails is asked again some time, or never.

import { join } from 'node:path';
import type { Api } from '../../src/client/api.ts';
import { HoldfastError, type ErrorCode } from '../../src/protocol/errors.ts';
import type { StartSpec } from '../../src/protocol/operations.ts';
import type { ProcessInfo } from '../../src/protocol/process.ts';
import type { Dice } from '../support/random.ts';
import type { Kind, Known, Model } from './model.ts';

export interface ClientOptions {
  readonly name: string;
  readonly api: Api;
  readonly owner: string;
  readonly model: Model;
  readonly roll: Dice;
  /** Every run of a program adds a line to the file of its key in this folder. */
  readonly witness: string;
}

const MOST_OPEN = 6;
const WAIT_MS = 200;
const END_MS = 5000;
/** Never an answer: the question was not a wrong one, and the process is known. */
const NEVER: ReadonlySet<ErrorCode> = new Set([
  'internal',
  'key_conflict',
  'id_taken',
  'invalid_input',
]);

export class Client {
  readonly options: ClientOptions;
  readonly codes = new Map<string, number>();
  private readonly open: Known[] = [];
  private made = 0;

  constructor(options: ClientOptions) {
    this.options = options;
  }

  /** One operation. */
  async step(): Promise<void> {
    const { roll } = this.options;
    const own = this.open.length > 0 ? roll.pick(this.open) : undefined;
    if (!own || (this.open.length < MOST_OPEN && roll.chance(0.2))) return this.start(this.next());
    if (own.id === undefined) return this.start(own);
    const doings: (() => Promise<void>)[] = [
      () => this.start(own),
      () => this.look(this.another()),
      () => this.look(own),
      () => this.wait(own),
      () => this.read(this.another()),
      () => this.read(own),
      () => this.follow(own),
      () => this.text(own),
      () => this.list(),
      async () => void (await this.completions()),
      () => this.push(own),
      () => this.push(own),
    ];
    return roll.pick(doings)();
  }

  /** Ends what is left, and reads all of it. */
  async finish(): Promise<void> {
    for (const known of this.options.model.known.filter(({ key }) => this.mine(key))) {
      if (known.removed === 'asked') continue;
      // Never answered, it may not have run at all; asked again it attaches, or runs now.
      if (known.id === undefined) await this.start(known);
      if (known.id === undefined) continue;
      const { id } = known;
      const waits = [{ id, for: [{ kind: 'closed' as const }] }];
      // A question that was refused is asked again.
      for (let over = false; !over;) {
        if (!known.outcome && known.kind !== 'prints') await this.kill(known);
        const answer = await this.ask(known, () =>
          this.options.api.wait({ waits, timeoutMs: END_MS }),
        );
        over = answer?.timedOut === false;
      }
      await this.look(known);
      await this.read(known);
    }
  }

  /** A subscriber is known from its first question on. */
  async subscribe(): Promise<void> {
    await this.completions(true);
  }

  /** To be asked when every process has ended. */
  async drain(): Promise<void> {
    while (await this.completions(true));
  }

  private mine(key: string): boolean {
    return key.startsWith(`${this.options.name}-`);
  }

  private next(): Known {
    const { name, model, owner, roll } = this.options;
    this.made += 1;
    const key = `${name}-${this.made}`;
    const kind = roll.pick<Kind>(['prints', 'prints', 'copies', 'stays']);
    const lines = 1 + roll.below(40);
    const prints = Buffer.from(Array.from({ length: lines }, (_, n) => `${key} ${n}\n`).join(''));
    const known = model.expect({
      key,
      owner,
      kind,
      code: kind === 'prints' ? roll.below(200) : 0,
      ...(kind === 'prints' && { prints }),
      ...(kind === 'stays' && { prints: Buffer.from(`${key} stays\n`) }),
      ending: 'no',
      killed: false,
      removed: 'no',
      missed: false,
    });
    this.open.push(known);
    return known;
  }

  private spec({ key, kind, code, prints }: Known): StartSpec {
    const witness = join(this.options.witness, key);
    const begin = `echo run >> ${witness}`;
    if (kind === 'copies') return { key, command: `${begin}; exec cat`, stdin: 'pipe' };
    if (kind === 'stays') return { key, command: `${begin}; echo ${key} stays; exec sleep 600` };
    const lines = (prints?.toString() ?? '').split('\n').length - 1;
    return {
      key,
      command: `${begin}; i=0; while [ $i -lt ${lines} ]; do echo ${key} $i; i=$((i+1)); done; exit ${code}`,
    };
  }

  private async start(known: Known): Promise<void> {
    const { model, api } = this.options;
    const answer = await this.ask(known, () => api.start(this.spec(known)));
    if (answer) model.started(known, answer.process);
  }

  private async look(known: Known | undefined): Promise<void> {
    if (known?.id === undefined) return;
    const { id, outcome: before } = known;
    const info = await this.ask(known, () => this.options.api.get(id));
    if (info) this.options.model.ended(known, info.outcome, before);
  }

  private async wait(known: Known): Promise<void> {
    if (known.id === undefined) return;
    const { id } = known;
    const waits = [{ id, for: [{ kind: 'exit' as const }] }];
    const answer = await this.ask(known, () =>
      this.options.api.wait({ waits, timeoutMs: WAIT_MS }),
    );
    const [met] = answer?.met ?? [];
    if (met) this.options.model.ended(known, met.process.outcome, undefined);
  }

  /** From the beginning to the end of what is there. */
  private async read(known: Known | undefined): Promise<void> {
    if (known?.id === undefined) return;
    const { id, outcome: before } = known;
    const told = known.output.length;
    const chunks: Buffer[] = [];
    for (let after = 0, end = false; !end;) {
      const page = await this.ask(known, () => this.options.api.events({ id, after }));
      if (!page) return;
      for (const event of page.events) {
        if (event.kind === 'output') chunks.push(event.data);
        if (event.kind === 'gap') known.missed = true;
      }
      if (page.missed) known.missed = true;
      if (known.missed) return;
      if (page.nextAfter === after && !page.end) break;
      if (page.end && before) this.options.model.ended(known, page.outcome, before);
      ({ nextAfter: after, end } = page);
      if (end) this.options.model.whole(known, Buffer.concat(chunks));
    }
    this.options.model.printed(known, Buffer.concat(chunks), told);
  }

  /** What came since the last time. */
  private async follow(known: Known): Promise<void> {
    if (known.id === undefined) return;
    const { id, after } = known;
    const page = await this.ask(known, () =>
      this.options.api.events({ id, after, waitMs: WAIT_MS }),
    );
    if (!page || known.missed || page.missed) return;
    for (const event of page.events) {
      if (event.seq <= after)
        this.options.model.wrong(`${known.key}: event ${event.seq} after ${after}`);
      if (event.kind !== 'output') continue;
      const length = event.offset + event.data.length;
      const same = known.output.subarray(event.offset, length);
      if (!same.equals(event.data.subarray(0, same.length)))
        this.options.model.wrong(`${known.key}: event ${event.seq} has changed`);
      if (known.output.length >= event.offset && known.output.length < length)
        known.output = Buffer.concat([known.output.subarray(0, event.offset), event.data]);
    }
    known.after = Math.max(known.after, page.nextAfter);
  }

  private async text(known: Known): Promise<void> {
    if (known.id === undefined) return;
    const { id, outcome: before, prints } = known;
    const answer = await this.ask(known, () => this.options.api.text({ id, maxBytes: 262_144 }));
    if (
      answer &&
      before?.kind === 'exit' &&
      prints &&
      !known.missed &&
      answer.text !== prints.toString()
    )
      this.options.model.wrong(
        `${known.key}: its text is ${JSON.stringify(answer.text.slice(0, 80))}`,
      );
  }

  private async list(): Promise<void> {
    const { model, api } = this.options;
    const before = new Map(model.known.map(({ id, outcome }) => [id, outcome]));
    const answer = await this.ask(undefined, () => api.list({ limit: 1000 }));
    for (const info of answer?.processes ?? []) this.listed(info, before.get(info.id));
  }

  private listed(info: ProcessInfo, before: Known['outcome']): void {
    const known = this.options.model.known.find(({ id }) => id === info.id);
    if (known) this.options.model.ended(known, info.outcome, before);
  }

  /** Brings it nearer to its end. */
  private async push(known: Known): Promise<void> {
    if (known.outcome) return this.remove(known);
    if (known.kind === 'stays') return this.kill(known);
    if (known.kind === 'copies')
      return this.options.roll.chance(0.8) ? this.write(known) : this.eof(known);
    return this.look(known);
  }

  private async write(known: Known): Promise<void> {
    if (known.id === undefined || known.ending === 'asked') return this.eof(known);
    const { id } = known;
    const writeId = `w${known.writes.length}`;
    let write = known.writes.at(-1);
    if (!write || write.state === 'applied') {
      write = { writeId, text: `${known.key}/${writeId}\n`, state: 'asked' };
      known.writes.push(write);
    }
    const { text, writeId: asked } = write;
    const data = Buffer.from(text);
    const answer = await this.ask(known, () =>
      this.options.api.write({ id, data, writeId: asked }),
    );
    if (answer) write.state = 'applied';
  }

  private async eof(known: Known): Promise<void> {
    if (known.id === undefined) return;
    const { id } = known;
    known.ending = 'asked';
    await this.ask(known, () => this.options.api.write({ id, eof: true, writeId: 'eof' }));
  }

  private async kill(known: Known): Promise<void> {
    if (known.id === undefined) return;
    const { id } = known;
    known.killed = true;
    await this.ask(known, () => this.options.api.signal({ id, signal: 'KILL' }));
  }

  private async remove(known: Known): Promise<void> {
    if (known.id === undefined) return;
    const { id } = known;
    await this.read(known);
    known.removed = 'asked';
    this.open.splice(this.open.indexOf(known), 1);
    await this.ask(known, () => this.options.api.remove({ id, force: true }));
  }

  /** True when there was something. */
  private async completions(all = false): Promise<boolean> {
    const { model, api, name, owner, roll } = this.options;
    const subscriber = name;
    const answer = await this.ask(undefined, () => api.completions({ subscriber }));
    if (!answer) return all;
    model.completed(`${owner}/${name}`, answer.completions);
    const some = answer.completions.filter(() => all || roll.chance(0.8));
    if (some.length === 0) return false;
    const numbers = some.map(({ number }) => number);
    const done = await this.ask(undefined, () => api.acknowledge({ subscriber, numbers }));
    if (done)
      model.acknowledge(
        `${owner}/${name}`,
        some.map(({ id }) => id),
      );
    return true;
  }

  private another(): Known | undefined {
    const { model, owner, roll } = this.options;
    const others = model.known
      .slice(-200)
      .filter((each) => each.owner === owner && each.id !== undefined);
    return others.length > 0 ? roll.pick(others) : undefined;
  }

  /** The answer; undefined when there was none that can be relied on. */
  private async ask<T>(
    known: Known | undefined,
    question: () => Promise<T>,
  ): Promise<T | undefined> {
    const { model } = this.options;
    try {
      return await question();
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      this.codes.set(error.code, (this.codes.get(error.code) ?? 0) + 1);
      const gone = error.code === 'not_found' && known?.removed !== 'asked';
      if (NEVER.has(error.code) || gone)
        model.wrong(`${known?.key ?? this.options.name}: ${error.code}: ${error.message}`);
      return undefined;
    }
  }
}
