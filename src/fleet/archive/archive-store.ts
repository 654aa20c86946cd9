// Where an archive keeps its objects: a folder, or a bucket of S3.

import { HoldfastError } from '../../protocol/errors.ts';

export interface ArchiveStore {
  /** For messages. */
  readonly place: string;
  /** Replaces an object of this key as a whole. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Undefined if there is none. */
  get(key: string): Promise<Buffer | undefined>;
  /** The keys that begin with this; at most 1000. */
  list(prefix: string): Promise<string[]>;
  remove(key: string): Promise<void>;
  /** An address at which a host can put this object for some minutes, and no other one. Absent: bytes come through `put`. */
  readonly presign?: (key: string) => Promise<string>;
}

/** Credentials of S3 come from the environment, as for other programs. */
export interface StoreCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** "file:///folder", or "s3://BUCKET/PREFIX?endpoint=URL&region=NAME". */
export async function openStore(
  address: string,
  credentials: StoreCredentials | undefined,
): Promise<ArchiveStore> {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === 'file:') {
    const { FolderStore } = await import('./folder-store.ts');
    return new FolderStore(url);
  }
  if (url?.protocol !== 's3:' || url.hostname === '')
    throw new HoldfastError(
      'invalid_input',
      `"${address}" is not an archive: file:///FOLDER or s3://BUCKET/PREFIX.`,
      { field: 'archive' },
    );
  if (!credentials)
    throw new HoldfastError('invalid_input', 'An archive in S3 needs credentials.', {
      field: 'archive',
      remedy: 'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
    });
  const { S3Store } = await import('./s3-store.ts');
  return new S3Store(url, credentials);
}
