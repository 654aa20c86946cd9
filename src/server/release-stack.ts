// Releases in reverse order what was taken.

export class ReleaseStack {
  private readonly releases: (() => Promise<void> | void)[] = [];

  add(release: () => Promise<void> | void): void {
    this.releases.push(release);
  }

  async release(): Promise<void> {
    for (const release of this.releases.splice(0).toReversed()) await release();
  }
}
