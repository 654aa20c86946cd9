// What a gateway knows of the hosts, from their beats. A state is an observation: nothing is ended or started because of it.
// A gateway that does not hear its own beat is deaf, and judges nobody.

import type { Clock } from '../../base/clock.ts';
import type { Fabric, Heard } from '../wire/fabric.ts';
import { readBeat, type Beat } from '../wire/messages.ts';
import { readUp, subjects } from '../wire/subjects.ts';
import { tagIn, tagOf } from '../wire/tags.ts';

/**
 * here: its beats come. cut: NATS says that it does not listen. silent: neither beats nor that. conflict: two servers use its
 * name.
 */
export type HostState = 'here' | 'silent' | 'cut' | 'conflict';

export interface KnownHost {
  readonly name: string;
  readonly beat: Beat;
  readonly state: HostState;
  /** By the wall clock of this gateway. */
  readonly sinceMs: number;
}

interface Entry {
  readonly name: string;
  beat: Beat;
  state: HostState;
  sinceMs: number;
  heardUs: number;
  /** The server before this one. */
  formerBoot: string | undefined;
  conflictUs: number;
}

export interface HostTableOptions {
  readonly fabric: Fabric;
  readonly clock: Clock;
  /** The name of this gateway. */
  readonly gateway: string;
  /** A host is back, or its server is another one: what it was asked is asked again. */
  readonly returned: (host: string) => void;
}

const BEAT_MS = 1000;
const LOOK_MS = 250;
/** Three beats, and the time that one may take. */
const SILENT_MS = 3500;
/** When a beat is late, NATS is asked whether the host listens. */
const LATE_MS = 1400;
const DEAF_MS = 2500;
/** After a gateway hears again, beats of hosts that reconnect too are given this long. */
const JUDGE_AGAIN_MS = 5000;
const CONFLICT_MS = 5000;
/** Enough for the design's 10,000 per fleet. */
const MOST_HOSTS = 20_000;

export class HostTable {
  private readonly options: HostTableOptions;
  private readonly entries = new Map<string, Entry>();
  private readonly byTag = new Map<string, Set<string>>();
  private readonly waiting = new Set<() => void>();
  private heardSelfUs = -Infinity;
  private judgesFromUs = -Infinity;
  private cancelBeat: (() => void) | undefined;
  private cancelLook: (() => void) | undefined;

  constructor(options: HostTableOptions) {
    this.options = options;
    const { fabric } = options;
    fabric.subscribe(subjects.allUp, (message) => this.heard(message));
    fabric.onUp(() => {
      this.say();
      fabric.publish(subjects.rollCall, Buffer.alloc(0));
    });
    this.repeat('cancelBeat', BEAT_MS, () => this.say());
    this.repeat('cancelLook', LOOK_MS, () => this.look());
  }

  get(name: string): KnownHost | undefined {
    return this.entries.get(name);
  }

  all(): KnownHost[] {
    return [...this.entries.values()];
  }

  /** The host that this id was made for; undefined if no known host is, or if two have the same tag. */
  madeFor(id: string): string | undefined {
    const [name, other] = this.byTag.get(tagIn(id) ?? '') ?? [];
    return other === undefined ? name : undefined;
  }

  /** The id was made for another host: what this one says of it does not count. */
  isOthers(host: string, id: string): boolean {
    const owner = this.madeFor(id);
    return owner !== undefined && owner !== host;
  }

  /** A time on the monotonic clock of a host's server. It is never ahead of that clock: a beat takes time to come. */
  hostNowMs(name: string): number {
    const entry = this.entries.get(name);
    if (!entry) return 0;
    return entry.beat.nowMs + (this.options.clock.nowUs() - entry.heardUs) / 1000;
  }

  /** States are frozen: this gateway does not hear itself, or has only just begun to. */
  get isDeaf(): boolean {
    return this.options.clock.nowUs() < this.judgesFromUs || this.hearsNothing();
  }

  /** NATS refused a message to this host because nobody listens. */
  noteUnheard(name: string): void {
    const entry = this.entries.get(name);
    if (!entry || this.isDeaf || this.sinceBeatMs(entry) < BEAT_MS) return;
    if (entry.state === 'here' || entry.state === 'silent') this.setState(entry, 'cut');
  }

  /** It has been forgotten. One that is here after all stays. */
  forget(name: string): void {
    const entry = this.entries.get(name);
    if (entry && entry.state !== 'here') this.drop(entry);
  }

  /** Resolves with the next change of any host. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.waiting.add(resolve));
  }

  close(): void {
    this.cancelBeat?.();
    this.cancelLook?.();
    this.wake();
  }

  private heard({ subject, bytes }: Heard): void {
    const up = readUp(subject);
    if (!up) return;
    if (up.name === this.options.gateway) {
      this.heardSelf();
      return;
    }
    const beat = readBeat(bytes);
    if (!beat) return;
    if (up.kind === 'bye') this.left(up.name, beat);
    else this.noteBeat(up.name, beat, up.kind === 'hello');
  }

  private heardSelf(): void {
    const nowUs = this.options.clock.nowUs();
    if (this.hearsNothing()) {
      // At the start nobody has been heard, so there is nobody to misjudge.
      const wait = this.heardSelfUs === -Infinity ? 0 : JUDGE_AGAIN_MS;
      this.judgesFromUs = nowUs + wait * 1000;
    }
    this.heardSelfUs = nowUs;
  }

  private hearsNothing(): boolean {
    return this.options.clock.nowUs() - this.heardSelfUs > DEAF_MS * 1000;
  }

  private noteBeat(name: string, beat: Beat, hello: boolean): void {
    const entry = this.entries.get(name) ?? this.add(name, beat);
    if (!entry) return;
    const nowUs = this.options.clock.nowUs();
    const newServer = beat.boot !== entry.beat.boot;
    if (newServer && beat.boot === entry.formerBoot) entry.conflictUs = nowUs;
    if (newServer) entry.formerBoot = entry.beat.boot;
    entry.beat = beat;
    entry.heardUs = nowUs;
    const conflict = nowUs - entry.conflictUs < CONFLICT_MS * 1000;
    const before = entry.state;
    this.setState(entry, conflict ? 'conflict' : 'here');
    if (hello || newServer || before !== entry.state) this.options.returned(name);
  }

  private add(name: string, beat: Beat): Entry | undefined {
    if (this.entries.size >= MOST_HOSTS) return undefined;
    const { clock } = this.options;
    const entry: Entry = {
      name,
      beat,
      state: 'here',
      sinceMs: clock.wallMs(),
      heardUs: clock.nowUs(),
      formerBoot: undefined,
      conflictUs: -Infinity,
    };
    this.entries.set(name, entry);
    this.tag(entry);
    this.wake();
    return entry;
  }

  private left(name: string, beat: Beat): void {
    const entry = this.entries.get(name);
    // A goodbye of an earlier server says nothing of the present one.
    if (entry?.beat.boot === beat.boot) this.drop(entry);
  }

  private drop(entry: Entry): void {
    this.untag(entry);
    this.entries.delete(entry.name);
    this.wake();
  }

  private tag({ name }: Entry): void {
    const tag = tagOf(name);
    const same = this.byTag.get(tag) ?? new Set();
    this.byTag.set(tag, same.add(name));
  }

  private untag({ name }: Entry): void {
    const tag = tagOf(name);
    const same = this.byTag.get(tag);
    same?.delete(name);
    if (same?.size === 0) this.byTag.delete(tag);
  }

  private setState(entry: Entry, state: HostState): void {
    if (entry.state === state) return;
    entry.state = state;
    entry.sinceMs = this.options.clock.wallMs();
    this.wake();
  }

  private look(): void {
    if (this.isDeaf || !this.options.fabric.connected) return;
    for (const entry of this.entries.values()) {
      const ms = this.sinceBeatMs(entry);
      if (ms > SILENT_MS && (entry.state === 'here' || entry.state === 'conflict'))
        this.setState(entry, 'silent');
      if (ms > LATE_MS && entry.state !== 'cut') this.probe(entry.name);
    }
  }

  /** Only NATS answers, and only if nobody listens. */
  private probe(name: string): void {
    const reply = subjects.answer(this.options.gateway, name, 'control', 0);
    this.options.fabric.publish(subjects.notes(name), Buffer.alloc(0), { reply });
  }

  private sinceBeatMs({ heardUs }: Entry): number {
    return (this.options.clock.nowUs() - heardUs) / 1000;
  }

  private say(): void {
    const { fabric, gateway } = this.options;
    fabric.publish(subjects.up(gateway, 'beat'), Buffer.from('{}'));
  }

  private repeat(name: 'cancelBeat' | 'cancelLook', ms: number, act: () => void): void {
    this[name] = this.options.clock.after(ms, () => {
      act();
      this.repeat(name, ms, act);
    });
  }

  private wake(): void {
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }
}
