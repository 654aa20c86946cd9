# A file system that never answers: argument is the folder it is mounted on. Says "mounted"; the end of stdin ends it.
import ctypes, os, sys

folder = sys.argv[1].encode()
libc = ctypes.CDLL(None, use_errno=True)
fuse = os.open('/dev/fuse', os.O_RDWR)
options = f'fd={fuse},rootmode=40000,user_id=0,group_id=0'.encode()
if libc.mount(b'dead', folder, b'fuse', 0, options) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print('mounted', flush=True)
sys.stdin.read()
# MNT_DETACH; with the descriptor the connection ends, and whoever waits is refused.
libc.umount2(folder, 2)
