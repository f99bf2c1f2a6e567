// Reads the folder of sealed files. All that is wrong in it is told at once, with what is likely and how to mend it.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isSandboxId } from '../../base/sandbox-id.ts';
import type { Sealer } from '../../base/seal.ts';
import { codeOf, fileError } from '../../tls/pem-files.ts';
import { leftoverOf, readBoundedFile } from './state-file.ts';
import { maxStateFileBytes, type OpenedState, openState } from './state-seal.ts';

const SUFFIX = '.sealed';
const MAX_NAMED = 5;

/** Ids of sealed files, leftovers of a crash, and names that are none of ours. */
export type StateListing = {
  readonly ids: readonly string[];
  readonly leftovers: readonly string[];
  readonly outsiders: readonly string[];
};

export function stateFileName(id: string): string {
  return `${id}${SUFFIX}`;
}

export async function listState(folder: string): Promise<StateListing> {
  const names = await readdir(folder).catch((cause: unknown) => {
    throw fileError(folder, `cannot be listed (${codeOf(cause)})`, 'It must be a directory of ours', cause);
  });
  const sorted = names.toSorted();
  const leftovers = sorted.filter((name) => idOf(leftoverOf(name)) !== undefined);
  const outsiders = sorted.filter((name) => idOf(name) === undefined && !leftovers.includes(name));
  return { ids: sorted.map(idOf).filter((id) => id !== undefined), leftovers, outsiders };
}

/** `keyName` stands for the key in messages. */
export async function readStates(
  folder: string,
  ids: readonly string[],
  key: { readonly sealer: Sealer; readonly name: string },
): Promise<ReadonlyMap<string, string>> {
  const contents = new Map<string, string>();
  const headErrors: string[] = [];
  let hasUnopened = false;
  for (const id of ids) {
    const opened = await readState(join(folder, stateFileName(id)), id, key.sealer);
    if ('content' in opened) {
      contents.set(id, opened.content);
    } else {
      headErrors.push(`${stateFileName(id)} ${opened.error}`);
      hasUnopened ||= opened.isUnopened;
    }
  }
  if (headErrors.length === 0) return contents;
  const isKeyDoubtful = hasUnopened && contents.size === 0;
  const found = `${headErrors.length} of ${ids.length} files cannot be used: ${enumerate(headErrors)}`;
  throw isKeyDoubtful
    ? fileError(
        folder,
        `${found}; ${key.name} is not the key that sealed them, or they are damaged`,
        WRONG_KEY,
      )
    : fileError(folder, `${found}${hasUnopened ? `; ${DAMAGED}` : ''}`, HINT);
}

const WRONG_KEY = 'Give the key that sealed them, or remove this directory to begin anew';
const DAMAGED = 'the key opens others, so what does not open is damaged, cut short or the copy of another';
const HINT = 'Restore each from a copy, or remove it to begin that sandbox anew';

/** Told before anything is read: nobody knows what a file of another name was meant to be. */
export function outsidersFound(folder: string, names: readonly string[]): Error {
  const found = `${enumerate(names)} ${names.length === 1 ? 'is' : 'are'} not a file of ours`;
  return fileError(folder, found, 'Move what is not NAME.sealed elsewhere');
}

async function readState(file: string, id: string, sealer: Sealer): Promise<OpenedState> {
  const bytes = await readBoundedFile(file, maxStateFileBytes);
  return typeof bytes === 'string' ? { error: bytes, isUnopened: false } : openState(sealer, id, bytes);
}

function idOf(name: string | undefined): string | undefined {
  if (!name?.endsWith(SUFFIX)) return undefined;
  const id = name.slice(0, -SUFFIX.length);
  return isSandboxId(id) ? id : undefined;
}

function enumerate(items: readonly string[]): string {
  const rest = items.length - MAX_NAMED;
  // Escaped: a file's name may hold anything, and this goes to a terminal.
  const named = items.slice(0, MAX_NAMED).map((item) => JSON.stringify(item).slice(1, -1));
  return named.join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
