// Starts a server in the folder that is given, and prints how many scripts it has loaded, and how many of them are about exporting.
import { Session } from 'node:inspector/promises';
import { startServer } from '../../dist/server/server.js';

const [home = ''] = process.argv.slice(2);
const server = await startServer({ home, env: process.env, keeperArgs: ['--idle-ms', '1000'] });
const urls = [];
const session = new Session();
session.connect();
session.on('Debugger.scriptParsed', ({ params }) => urls.push(params.url));
await session.post('Debugger.enable');
session.disconnect();
const about = /telemetry\/(?:telemetry|otlp-\w+|tracing|trace-context)\.js$/;
const telemetry = urls.filter((url) => about.test(url)).length;
process.stdout.write(JSON.stringify({ telemetry, scripts: urls.length }));
const link = await server.host.link();
await link.stop();
await server.close();
