// `holdfast export`

import { closeSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { errnoOf } from '../../base/disk.ts';
import { errors, HoldfastError } from '../../protocol/errors.ts';
import { streams, type ProcessEvent } from '../../protocol/event.ts';
import type { Missed } from '../../protocol/host-api.ts';
import { isError, type Caller } from '../caller.ts';
import type { Answer, Command } from '../arguments/command.ts';
import { follow, gapWords, missedReason } from '../log/follow.ts';
import type { Output } from '../output/output.ts';
import { Progress } from '../output/progress.ts';
import { openTarget } from '../output/target-file.ts';
import { formatBytes } from '../arguments/units.ts';
import { summaries } from '../summaries.ts';

export const command: Command = {
  name: 'export',
  usage: 'ID [FILE] [--stream NAME] [--force]',
  summary: summaries.export,
  examples: ['holdfast export build build.log', 'holdfast export build --stream stderr'],
  takes: 'processes',
  options: {
    stream: {
      type: 'string',
      value: 'NAME',
      completes: streams,
      about: `only this stream: ${streams.join(', ')}`,
    },
    force: { type: 'boolean', about: 'overwrite FILE' },
    raw: { type: 'boolean', about: 'send control characters to the terminal unchanged' },
  },
  notes: [
    'FILE "-" is stdout. Without a running keeper it reads the journal files and changes nothing,',
    'so it also works on a copy:',
    '  holdfast export ID out.bin --home /backup/holdfast',
    'Only you can read FILE. Missing output is reported on stderr;',
    `the exit code is ${errors.journal_damaged.exit} if output is damaged.`,
  ],
  read({ words, caller, out }) {
    const [text = '', path] = words.expect('ID', '[FILE]');
    const file = path === '-' ? undefined : path;
    const stream = words.choice('stream', streams);
    const overwrite = words.flag('force');
    if (out.json && file === undefined)
      throw words.wrong('--json needs a FILE: stdout cannot carry both');
    return async (): Promise<Answer> => {
      const source = await locate(caller, text);
      // Opened after the id is found: a wrong id creates no empty file.
      const target =
        file === undefined ? undefined : openTarget('export', resolve(caller.cwd, file), overwrite);
      const bytes =
        target === undefined ? (data: Buffer) => out.bytes('stdout', data) : writerTo(target);
      const { total } = source;
      const sink = new ExportSink({ out, bytes, stream, total });
      try {
        await source.feed(sink);
      } finally {
        if (target !== undefined) closeSync(target);
      }
      const { id, from } = source;
      const { exported, missedBytes, damaged } = sink;
      const result = {
        id,
        from,
        bytes: exported,
        missedBytes,
        ...(file !== undefined && { file }),
      };
      const lines = file === undefined ? [] : [`${exported} bytes of ${id} written to ${file}`];
      return { result, lines, exitCode: damaged ? errors.journal_damaged.exit : 0 };
    };
  },
};

interface ExportSource {
  readonly id: string;
  readonly from: 'keeper' | 'files';
  /** Output bytes of all streams. */
  readonly total: number;
  readonly feed: (sink: ExportSink) => Promise<void>;
}

async function locate(caller: Caller, text: string): Promise<ExportSource> {
  const keeper = await caller.running().catch((error: unknown) => {
    // With these errors the files can still be read.
    if (isError(error, 'home_unsafe', 'unsupported', 'keeper_too_old', 'keeper_lost'))
      return undefined;
    throw error;
  });
  if (keeper) {
    const process = await caller.find(text);
    return {
      id: process.id,
      from: 'keeper',
      total: process.bytes.total,
      async feed(sink) {
        const event = (each: ProcessEvent): Promise<void> => sink.event(each);
        await follow(caller, process, {
          until: 'now',
          event,
          missed: (missed) => sink.missed(missed),
        });
      },
    };
  }
  const { findStored, storedPages } = await import('../log/journal-folder.ts');
  const { id, journal } = findStored(caller.home, text, caller.name);
  return {
    id,
    from: 'files',
    total: 0,
    async feed(sink) {
      for await (const { missed, events } of storedPages(journal)) {
        if (missed) await sink.missed(missed);
        for (const event of events) await sink.event(event);
      }
    },
  };
}

interface ExportSinkOptions {
  readonly out: Output;
  readonly bytes: (data: Buffer) => Promise<void>;
  readonly stream: string | undefined;
  /** 0 if unknown. */
  readonly total: number;
}

/** Writes the output bytes of events, and counts them and the missing ones. */
class ExportSink {
  exported = 0;
  missedBytes = 0;
  damaged = false;
  private readonly options: ExportSinkOptions;
  private readonly progress: Progress;

  constructor(options: ExportSinkOptions) {
    this.options = options;
    this.progress = new Progress(options.out, (done) => `${formatBytes(done)} exported`);
  }

  async event(event: ProcessEvent): Promise<void> {
    if (event.kind === 'gap') await this.reportMissing(event.body.bytes, event.body.reason);
    if (event.kind !== 'output') return;
    const { stream, bytes, total } = this.options;
    this.progress.at(event.offset, total);
    if (stream !== undefined && event.stream !== stream) return;
    this.exported += event.data.length;
    await bytes(event.data);
  }

  missed(missed: Missed): Promise<void> {
    this.damaged ||= missed.reason === 'damage';
    return this.reportMissing(missed.bytes, missedReason(missed));
  }

  private async reportMissing(bytes: number, reason: string): Promise<void> {
    this.missedBytes += bytes;
    const { out } = this.options;
    if (!out.json) await out.note(`after ${this.exported} bytes: ${gapWords(bytes, reason)}`);
  }
}

function writerTo(fd: number): (data: Buffer) => Promise<void> {
  return async (data) => {
    try {
      // A full disk can take less than all without an error; the next write says why.
      for (let written = 0; written < data.length;) written += writeSync(fd, data, written);
    } catch (error) {
      const errno = errnoOf(error);
      const code =
        errno === 'ENOSPC' || errno === 'EDQUOT' || errno === 'EFBIG'
          ? 'storage_full'
          : 'storage_unavailable';
      throw new HoldfastError(code, `The export is not complete: ${errno ?? String(error)}.`, {
        errno,
      });
    }
  };
}
