"""A real RTSP server, of GStreamer: run by the system's Python, which has its bindings.

    rtsp_server.py PORT VIDEO.mp4 [USER:PASSWORD]

Each client gets the video from its start, in real time; then the stream ends.
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402


def main(port: str, video: str, credentials: str = "") -> None:
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(port)
    factory = GstRtspServer.RTSPMediaFactory()
    launch = f"( filesrc location={video} ! qtdemux ! rtph264pay name=pay0 config-interval=1 )"
    factory.set_launch(launch)
    if credentials:
        user, _, password = credentials.partition(":")
        token = GstRtspServer.RTSPToken()
        token.set_string("media.factory.role", "viewer")
        auth = GstRtspServer.RTSPAuth()
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic(user, password), token)
        server.set_auth(auth)
        rights = "viewer, media.factory.access=true, media.factory.construct=true"
        factory.add_role_from_structure(Gst.Structure.new_from_string(rights))
    server.get_mount_points().add_factory("/cam", factory)
    if not server.attach(None):
        sys.exit("the port is taken")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    GLib.MainLoop().run()


main(*sys.argv[1:])
