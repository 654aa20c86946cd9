// What terminals can do on this machine, in agent-tty's words.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

interface Capability {
  readonly name: string;
  readonly status: 'available' | 'unavailable';
  readonly reason?: string;
}

/** As far as it is known without a look at the emulator and the fonts; those come with us. */
export function knownCapabilities(
  path: string | undefined,
  { screens = true, pictures = true } = {},
): Capability[] {
  const row = (name: string, available: boolean, reason: string): Capability => ({
    name,
    status: available ? 'available' : 'unavailable',
    ...(!available && { reason }),
  });
  return [
    row('snapshot', screens, 'no emulator'),
    row('wait', screens, 'no emulator'),
    row('screenshot', pictures, 'no fonts'),
    row('record-export-asciicast', true, ''),
    row('record-export-webm', pictures && onPath('ffmpeg', path), 'no ffmpeg on the PATH'),
    row('dashboard', true, ''),
  ];
}

function onPath(program: string, path = ''): boolean {
  return path.split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, program)));
}
