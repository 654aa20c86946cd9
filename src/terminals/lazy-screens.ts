// The modules that draw screens, loaded when the first terminal needs them. The server loads them soon after its start, so that
// a new version of the files cannot get between.

export const lazyScreens = {
  screens: () => import('../screen/view/screens.ts'),
  pictures: () => import('../screen/picture/pictures.ts'),
  recordings: () => import('../screen/recording/recordings.ts'),
  asciicast: () => import('../screen/recording/asciicast.ts'),
  repaint: () => import('../screen/view/repaint.ts'),
} as const;
