// Playing what a terminal showed, at a speed that is chosen, up to the present.

import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useKeys } from '../core/keyboard.ts';

const SPEEDS = [1, 2, 5, 10, 60] as const;
/** Between two pictures. */
const STEP_MS = 250;

export interface Player {
  readonly isPlaying: Signal<boolean>;
  readonly speed: Signal<number>;
}

interface Played {
  /** The moment that is shown. */
  readonly at: number;
  readonly to: number;
  readonly isPast: boolean;
  readonly show: (ms: number) => void;
  readonly live: () => void;
}

export function usePlayer(now: Played): Player {
  const isPlaying = useSignal(false);
  const speed = useSignal<number>(SPEEDS[0]);
  const latest = useRef(now);
  latest.current = now;
  useEffect(() => {
    if (!isPlaying.value) return undefined;
    let { at } = latest.current;
    let wasPast = false;
    const timer = setInterval(() => {
      // The person has returned to the present.
      if (wasPast && !latest.current.isPast) {
        isPlaying.value = false;
        return;
      }
      wasPast = latest.current.isPast;
      at += STEP_MS * speed.value;
      if (at < latest.current.to) {
        latest.current.show(at);
        return;
      }
      isPlaying.value = false;
      latest.current.live();
    }, STEP_MS);
    return () => clearInterval(timer);
  }, [isPlaying.value, speed.value]);
  const faster = (by: number): void => {
    const index = SPEEDS.findIndex((each) => each === speed.value) + by;
    speed.value = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, index))] ?? 1;
  };
  useKeys([
    { keys: 'Space', label: 'play', run: () => (isPlaying.value = !isPlaying.value) },
    { keys: '<', run: () => faster(-1) },
    { keys: '>', label: 'faster', run: () => faster(1) },
  ]);
  return { isPlaying, speed };
}

export function Play({ player: { isPlaying, speed } }: { readonly player: Player }) {
  return (
    <span class="play">
      <button type="button" onClick={() => (isPlaying.value = !isPlaying.value)}>
        {isPlaying.value ? 'Pause' : 'Play'}
      </button>
      <select
        aria-label="Speed"
        value={speed.value}
        onChange={({ currentTarget }) => (speed.value = Number(currentTarget.value))}
      >
        {SPEEDS.map((each) => (
          <option key={each} value={each}>
            {each} ×
          </option>
        ))}
      </select>
    </span>
  );
}
