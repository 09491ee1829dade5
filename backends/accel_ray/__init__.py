"""Engines as Ray actors that many programs share: `accel.backend.Backend.ray`, `accel up`.

An actor is a process with an in-process host in it. A program's host takes its engines from here (`source`) and gets
proxies that forward to the actors; what it asks for, and how, stays the same.
"""
