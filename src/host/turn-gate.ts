// Lets a few through per turn of the event loop and the rest in the turns after, so that a burst of starts does not
// keep everything else waiting.

export class TurnGate {
  private readonly perTurn: number;
  private passed = 0;
  private readonly waiting: (() => void)[] = [];
  private scheduled = false;

  constructor(perTurn: number) {
    this.perTurn = perTurn;
  }

  pass(): Promise<void> | undefined {
    if (!this.scheduled) {
      this.scheduled = true;
      setImmediate(() => this.nextTurn());
    }
    if (this.waiting.length === 0 && this.passed < this.perTurn) {
      this.passed += 1;
      return undefined;
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  private nextTurn(): void {
    const now = this.waiting.splice(0, this.perTurn);
    this.passed = now.length;
    this.scheduled = this.passed > 0;
    if (this.scheduled) setImmediate(() => this.nextTurn());
    for (const resolve of now) resolve();
  }
}
