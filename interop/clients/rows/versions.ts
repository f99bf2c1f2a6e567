// The commands that print the version of a package.
import type { Command } from '../client-row.ts';

export function npmVersion(folder: string, name: string): Command {
  return `{node} -p "JSON.parse(fs.readFileSync('{${folder}}/node_modules/${name}/package.json')).version"`;
}

export function pythonVersion(folder: string, name: string): Command {
  return `{${folder}}/bin/python -c "import importlib.metadata as m; print(m.version('${name}'))"`;
}
