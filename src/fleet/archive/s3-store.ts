// An archive in a bucket of S3, or of what speaks like it. Hosts get presigned addresses and no keys.

import { AwsClient } from 'aws4fetch';
import { HoldfastError } from '../../protocol/errors.ts';
import { isLoopback } from '../wire/addresses.ts';
import type { ArchiveStore, StoreCredentials } from './archive-store.ts';

const MOST_KEYS = 1000;
/** How long a host may take until it begins to send a segment. */
const PRESIGNED_SECONDS = 900;
/** A segment has at most 8 MiB. */
const REQUEST_MS = 60_000;
const MAX_OBJECT_BYTES = 32 * 1024 * 1024;
const MAX_LIST_BYTES = 4 * 1024 * 1024;

export class S3Store implements ArchiveStore {
  readonly place: string;
  private readonly client: AwsClient;
  private readonly base: string;
  private readonly prefix: string;

  constructor(url: URL, credentials: StoreCredentials) {
    const { hostname: bucket, pathname, searchParams } = url;
    const region = searchParams.get('region') ?? 'us-east-1';
    const endpoint = new URL(searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`);
    if (endpoint.protocol !== 'https:' && !isLoopback(endpoint.hostname))
      throw new HoldfastError('forbidden', `${endpoint.origin} has no TLS.`, {
        remedy: 'Use an endpoint with https://.',
      });
    this.place = `s3://${bucket}${pathname}`;
    this.base = `${endpoint.origin}/${bucket}`;
    this.prefix = pathname.replace(/^\/+|\/+$/g, '');
    this.client = new AwsClient({
      ...credentials,
      service: 's3',
      region,
      // A failure is tried again by the archiver, which knows what is still wanted.
      retries: 0,
    });
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.ask('PUT', this.urlOf(key), Buffer.from(bytes));
  }

  async get(key: string): Promise<Buffer | undefined> {
    const answer = await this.ask('GET', this.urlOf(key));
    const parts: Uint8Array[] = [];
    let bytes = 0;
    // A host has put it there: it may be of any size, and grow when it is unpacked.
    for await (const part of (answer?.body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += part.length;
      if (bytes > MAX_OBJECT_BYTES) throw this.unavailable(`"${key}" is too large`);
      parts.push(part);
    }
    return answer && Buffer.concat(parts);
  }

  async list(prefix: string): Promise<string[]> {
    const url = new URL(this.base);
    url.searchParams.set('list-type', '2');
    url.searchParams.set('max-keys', String(MOST_KEYS));
    url.searchParams.set('prefix', this.keyOf(prefix));
    const text = (await (await this.ask('GET', url.href))?.text()) ?? '';
    if (text.length > MAX_LIST_BYTES) throw this.unavailable('a list without end');
    const skip = this.prefix === '' ? 0 : this.prefix.length + 1;
    return Array.from(text.matchAll(/<Key>([^<]*)<\/Key>/g), ([, key = '']) => key.slice(skip));
  }

  async remove(key: string): Promise<void> {
    await this.ask('DELETE', this.urlOf(key));
  }

  readonly presign = async (key: string): Promise<string> => {
    const url = new URL(this.urlOf(key));
    url.searchParams.set('X-Amz-Expires', String(PRESIGNED_SECONDS));
    const signed = await this.client.sign(url, { method: 'PUT', aws: { signQuery: true } });
    return signed.url;
  };

  /** Keys consist of letters that need no escape. */
  private keyOf(key: string): string {
    return this.prefix === '' ? key : `${this.prefix}/${key}`;
  }

  private urlOf(key: string): string {
    return `${this.base}/${this.keyOf(key)}`;
  }

  /** Undefined for an object that is not there. */
  private async ask(method: string, url: string, body?: Buffer): Promise<Response | undefined> {
    let answer: Response;
    try {
      const signal = AbortSignal.timeout(REQUEST_MS);
      answer = await this.client.fetch(url, {
        method,
        signal,
        redirect: 'error',
        ...(body && { body: new Uint8Array(body) }),
      });
    } catch (error) {
      throw this.unavailable(error instanceof Error ? error.message : String(error));
    }
    if (answer.status === 404 && method !== 'PUT') {
      await answer.body?.cancel();
      return undefined;
    }
    if (answer.ok) return answer;
    await answer.body?.cancel();
    throw this.unavailable(`status ${answer.status}`);
  }

  private unavailable(why: string): HoldfastError {
    return new HoldfastError('archive_unavailable', `The archive ${this.place} failed: ${why}.`);
  }
}
