// An S3 server as a process of its own. Prints its address as its first line.
import { openS3Server } from '../../test/support/s3-server.ts';

const server = await openS3Server();
console.log(server.endpoint);
