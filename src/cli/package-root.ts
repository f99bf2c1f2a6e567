// The directory of the package's own files: the parent of src/ in a checkout, of dist/ in the package and the image.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const packageRoot: string = findRoot(import.meta.dirname);

function findRoot(from: string): string {
  const above = dirname(from);
  return existsSync(join(from, 'package.json')) || above === from ? from : findRoot(above);
}
