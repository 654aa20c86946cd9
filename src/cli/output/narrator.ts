// Tells a tour in numbered parts; says nothing when the answer is to be JSON.

import type { Output } from './output.ts';

export class Narrator {
  private readonly out: Output;
  private parts = 0;

  constructor(out: Output) {
    this.out = out;
  }

  async part(title: string): Promise<void> {
    this.parts += 1;
    await this.line('');
    await this.line(`${this.parts}. ${title}`);
  }

  async line(text: string): Promise<void> {
    const indent = text === '' || this.parts === 0 || /^\d\. /.test(text) ? '' : '   ';
    if (!this.out.json) await this.out.line(indent + text);
  }

  async end(): Promise<void> {
    await this.line('');
  }
}
