// If-Match and If-None-Match (RFC 9110 §13.1). Pure; it must not know what the tags stand for.

export type TagList = { readonly ok: true; readonly tags: readonly string[] | '*' } | { readonly ok: false };

const LIST = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*$/;
const TAG = /(?:W\/)?"[^"]*"/g;

/** `*`, or one or more entity tags, weak ones with their `W/`. */
export function parseTagList(field: string): TagList {
  if (field === '*') return { ok: true, tags: '*' };
  if (!LIST.test(field)) return { ok: false };
  return { ok: true, tags: field.match(TAG) ?? [] };
}

/** Strong comparison: a weak tag never matches, so it is left out (RFC 9110 §8.8.3.2). */
export function strongTags(tags: readonly string[] | '*'): readonly string[] | '*' {
  return tags === '*' ? tags : tags.filter((tag) => !tag.startsWith('W/'));
}

/** Weak comparison, for reads: what is the same but for `W/` is the same. */
export function matchesWeakly(tags: readonly string[] | '*', current: string): boolean {
  return tags === '*' || tags.some((tag) => tag.replace(/^W\//, '') === current.replace(/^W\//, ''));
}
