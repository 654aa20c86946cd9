// Finds what a program says to get a person's attention in the output of its terminal: the bell, and notices (OSC 9 and
// OSC 777). Output without control strings costs two searches for a few bytes.

const BEL = 7;
const ESC = 0x1b;
const OSC = Buffer.from('\x1b]');
const NOTICE_STARTS = ['\x1b]9;', '\x1b]777;notify;'] as const;
/** A longer string is no notice. */
const MOST_BYTES = 1024;
/** Stands for the beginning of a string that is too long to be kept. */
const LONG = Buffer.from('\x1b]-');
const NOTHING = Buffer.alloc(0);
/** OSC 9;4 reports progress. */
const PROGRESS = /^4(?:;|$)/;

interface Notice {
  /** Empty for a bell. */
  readonly text: string;
}

export class NoticeScanner {
  /** The beginning of a string that has not ended. */
  private open: Buffer = NOTHING;

  /** The last notice that ends in these bytes. */
  scan(bytes: Buffer): Notice | undefined {
    const { open } = this;
    if (open.length === 0 && !bytes.includes(BEL) && !bytes.includes(ESC)) return undefined;
    const data = open.length === 0 ? bytes : Buffer.concat([open, bytes]);
    const bells = new NextByte(data, BEL);
    let found: Notice | undefined;
    let at = 0;
    for (;;) {
      const string = data.indexOf(OSC, at);
      const bell = bells.from(at);
      if (bell >= 0 && (string < 0 || bell < string)) found = { text: '' };
      if (string < 0) break;
      const end = stringEnd(data, string, bells.from(string));
      if (!end) {
        this.open = keptPart(data.subarray(string));
        return found;
      }
      found = noticeIn(data.subarray(string, end.text)) ?? found;
      at = end.next;
    }
    this.open = data.at(-1) === ESC ? Buffer.of(ESC) : NOTHING;
    return found;
  }
}

/** Each byte of the data is looked at once, however often the next one is asked for. */
class NextByte {
  private readonly data: Buffer;
  private readonly byte: number;
  private at = -2;

  constructor(data: Buffer, byte: number) {
    this.data = data;
    this.byte = byte;
  }

  from(position: number): number {
    if (this.at !== -1 && this.at < position) this.at = this.data.indexOf(this.byte, position);
    return this.at;
  }
}

/** A string ends by BEL, by ST, or by any other escape sequence. */
function stringEnd(
  data: Buffer,
  at: number,
  bell: number,
): { readonly text: number; readonly next: number } | undefined {
  const escape = data.indexOf(ESC, at + OSC.length);
  if (escape < 0 || (bell >= 0 && bell < escape))
    return bell < 0 ? undefined : { text: bell, next: bell + 1 };
  // It may still become ST.
  if (escape === data.length - 1) return undefined;
  return { text: escape, next: data[escape + 1] === 0x5c ? escape + 2 : escape };
}

function keptPart(string: Buffer): Buffer {
  return string.length > MOST_BYTES ? LONG : Buffer.from(string);
}

function noticeIn(string: Buffer): Notice | undefined {
  if (string.length > MOST_BYTES) return undefined;
  const whole = string.toString('utf8');
  const start = NOTICE_STARTS.find((each) => whole.startsWith(each));
  if (start === undefined) return undefined;
  const text = whole.slice(start.length);
  return PROGRESS.test(text) ? undefined : { text: text.replace(';', ': ') };
}
