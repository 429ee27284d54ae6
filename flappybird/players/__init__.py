"""Who can play without a model."""
