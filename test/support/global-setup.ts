// Runs once before all tests: whatever the tests create, they create under a permissive umask, so that a file mode
// which depends on the umask shows itself.
export function setup(): void {
  process.umask(0o000);
}
