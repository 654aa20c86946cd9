// One tile of the wall: the screen of a terminal or the end of a log, drawn while it is in view.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { ThumbnailMessage } from '../../protocol/dashboard/thumbnail.ts';
import { needOf } from '../core/needs.ts';
import { nowMs } from '../core/now.ts';
import { isDark } from '../core/settings.ts';
import { subscribe } from '../core/watch.ts';
import { piecesOf } from '../model/log-text.ts';
import { LogWindow } from '../model/log-window.ts';
import { needWords, stateWords } from '../model/state-words.ts';
import { durationText, visibleText } from '../model/words.ts';
import { processLink } from '../parts/process-list.tsx';
import { TilePainter } from './tile-painter.ts';

interface Props {
  readonly process: ProcessInfo;
  readonly hz: number;
  readonly isChosen: boolean;
}

const LOG_LINES = 13;
const LOG_BYTES = 4096;

export function Tile({ process, hz, isChosen }: Props) {
  const { owner, id, streams, name, command, lastOutputAtMs, startedAtMs } = process;
  const element = useRef<HTMLAnchorElement>(null);
  const isSeen = useSignal(false);
  const last = useSignal('');
  useEffect(() => {
    const tile = element.current;
    if (!tile) return undefined;
    const observer = new IntersectionObserver((entries) => {
      isSeen.value = entries.at(-1)?.isIntersecting ?? false;
    });
    observer.observe(tile);
    return () => observer.disconnect();
  }, [owner, id]);
  useEffect(() => {
    if (isChosen) element.current?.scrollIntoView({ block: 'nearest' });
  }, [isChosen]);
  const need = needOf(process);
  const { glyph, word, tone } = need ? needWords(need) : stateWords(process);
  const quietMs = nowMs.value - (lastOutputAtMs ?? startedAtMs);
  const title = name ?? command;
  return (
    <a
      ref={element}
      href={processLink(process)}
      class={`tile${isChosen ? ' chosen' : ''}${need ? ' needs' : ''}`}
    >
      {streams === 'pty' ? (
        <Picture
          process={process}
          hz={hz}
          isSeen={isSeen.value}
          shows={(text) => (last.value = text)}
        />
      ) : (
        <LogEnd process={process} isSeen={isSeen.value} />
      )}
      <span class="tile-words">
        <span class={tone}>
          <span aria-hidden="true">{glyph}</span> {word}
        </span>
        <b class="cut">{visibleText(title)}</b>
        <span class="muted">{durationText(quietMs)}</span>
      </span>
      <code class="tile-last cut muted">{visibleText(last.value)}</code>
    </a>
  );
}

interface PictureProps extends Pick<Props, 'process' | 'hz'> {
  readonly isSeen: boolean;
  readonly shows: (last: string) => void;
}

function Picture({ process: { owner, id }, hz, isSeen, shows }: PictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = isDark();
  useEffect(() => {
    if (!isSeen || !canvas.current) return undefined;
    const painter = new TilePainter(canvas.current, dark);
    const observer = new ResizeObserver(() => painter.repaint());
    observer.observe(canvas.current);
    const stop = subscribe({
      begin: () => ({ type: 'thumbnail', owner, id, hz, theme: dark ? 'dark' : 'light' }),
      onMessage: (message) => {
        if (message.type === 'thumbnail')
          shows(painter.paint(message as unknown as ThumbnailMessage));
      },
    });
    return () => {
      observer.disconnect();
      stop();
    };
  }, [owner, id, hz, isSeen, dark]);
  return <canvas ref={canvas} aria-hidden="true" />;
}

function LogEnd({ process, isSeen }: Pick<PictureProps, 'process' | 'isSeen'>) {
  const { owner, id, bytes } = process;
  const lines = useSignal<readonly string[]>([]);
  useEffect(() => {
    if (!isSeen) return undefined;
    const first = Math.max(0, bytes.total - LOG_BYTES);
    const window = new LogWindow(first);
    return subscribe({
      begin: () => ({ type: 'log', owner, id, offset: window.to }),
      onBytes: (offset, data) => {
        window.append(offset, data);
        window.lines.splice(0, window.lines.length - LOG_LINES);
        const shown = window.partial ? [...window.lines, window.partial] : window.lines;
        lines.value = shown.slice(-LOG_LINES).map(({ text }) => text);
      },
    });
  }, [owner, id, isSeen]);
  return (
    <span class="tile-log" aria-hidden="true">
      {lines.value.map((text, index) => (
        <span key={index} class="line">
          {piecesOf(text).map((piece, at) => (
            <span key={at} class={piece.look}>
              {piece.text}
            </span>
          ))}
        </span>
      ))}
    </span>
  );
}
