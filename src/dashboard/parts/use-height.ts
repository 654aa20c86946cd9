// The height of an element, as it changes.

import { useSignal, type Signal } from '@preact/signals';
import { useLayoutEffect, type MutableRef } from 'preact/hooks';

/** Before the first layout. */
const USUAL_PX = 600;

export function useHeight(view: MutableRef<HTMLElement | null>): Signal<number> {
  const height = useSignal(USUAL_PX);
  useLayoutEffect(() => {
    const element = view.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => {
      height.value = element.clientHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return height;
}
