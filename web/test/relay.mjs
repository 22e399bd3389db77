// Passes connections to 127.0.0.1:RELAY_PORT on to the socket RELAY_SOCKET. It ends with the process that started it, which
// becomes Chromium (isolated.sh).
import net from 'node:net';
import {pipe} from './pipe.mjs';

const {RELAY_PORT: port, RELAY_SOCKET: path} = process.env;
const parent = process.ppid;
net.createServer((client) => pipe(client, net.connect({path}))).listen(Number(port), '127.0.0.1');
setInterval(() => process.ppid === parent || process.exit(), 500);
