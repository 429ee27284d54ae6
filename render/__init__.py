"""Episodes as pictures: drawn with pygame, without a display, sound or font of the system.

`scene` draws one state, `frames` an episode, `viewer` shows it in a window and `play` lets a person fly. Nothing here is loaded
before it is asked for, and nothing here writes a video: `videos` does.
"""
