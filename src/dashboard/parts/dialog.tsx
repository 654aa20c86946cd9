// A dialog in front of the page. Escape closes it, and the focus goes back to where it was.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useKeys } from '../core/keyboard.ts';

interface Props {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
}

export function Dialog({ title, close, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  // Also keeps the keys of the page below from being obeyed.
  useKeys([{ keys: 'Escape', label: 'close', run: close, inFields: true }], { modal: true });
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} aria-labelledby="dialog-title" onClose={close}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}
