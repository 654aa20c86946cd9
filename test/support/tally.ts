// The end of a test run: a file whose thread stands still is named and ended, and the last line is "N passed, M failed",
// for people and for machines that read only that.
import { readFileSync } from 'node:fs';

import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node';

/** What a file may be silent beyond the longest of its tests: its hooks, and a busy machine. */
const SPARE_MS = 120_000;

export default class Tally implements Reporter {
  /** By file: a test's own time limit needs the thread that it is to end, so this one is kept outside. */
  private readonly limits = new Map<TestModule, NodeJS.Timeout>();
  /** The runner tells of a file's end before it has told of the last of many quick tests. */
  private readonly ended = new Set<TestModule>();

  onTestModuleCollected(module: TestModule): void {
    this.heard(module);
  }

  onTestCaseResult(test: TestCase): void {
    this.heard(test.module);
  }

  onTestModuleEnd(module: TestModule): void {
    this.ended.add(module);
    clearTimeout(this.limits.get(module));
    this.limits.delete(module);
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    let passed = 0;
    let failed = errors.length;
    for (const module of modules) {
      failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const state = test.result().state;
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
      }
    }
    // After the default reporter's own summary, which is printed in the same turn.
    process.once('exit', () => process.stdout.write(`${passed} passed, ${failed} failed\n`));
  }

  private heard(module: TestModule): void {
    if (this.ended.has(module)) return;
    clearTimeout(this.limits.get(module));
    const times = [...module.children.allTests()].map((test) => test.options.timeout ?? 0);
    const silentMs = Math.max(0, ...times) + SPARE_MS;
    this.limits.set(module, setTimeout(() => endThreads(module, silentMs), silentMs).unref());
  }
}

/** Which of the threads it is cannot be known here. The runner tells each file that was in one as failed. */
function endThreads(module: TestModule, silentMs: number): void {
  process.stderr.write(
    `${module.moduleId} stands still: nothing heard of it for ${silentMs / 1000} s\n`,
  );
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1');
  for (const pid of children.match(/\d+/g) ?? []) process.kill(Number(pid), 'SIGKILL');
}
