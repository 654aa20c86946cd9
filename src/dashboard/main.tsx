// The dashboard begins here: the code leaves the address, the page signs in, and is drawn.

import { render } from 'preact';
import './style/base.css';
import './style/shell.css';
import './style/list.css';
import './style/process.css';
import './style/terminal.css';
import './style/inbox.css';
import './style/wall.css';
import './style/search.css';
import { App } from './app.tsx';
import { beginSession } from './core/sign-in.ts';

void beginSession();
addEventListener('hashchange', () => void beginSession());
const root = document.getElementById('app');
if (root) render(<App />, root);
