// Reports a problem once while it lasts, and again after it was over or another one came between.

export class ProblemReport {
  private readonly report: (problem: string) => void;
  private last: string | undefined;

  constructor(report: (problem: string) => void) {
    this.report = report;
  }

  /** The last problem, unless it is over. */
  get problem(): string | undefined {
    return this.last;
  }

  failed(error: unknown): void {
    const problem = error instanceof Error ? error.message : String(error);
    if (problem === this.last) return;
    this.last = problem;
    this.report(problem);
  }

  over(): void {
    this.last = undefined;
  }
}
